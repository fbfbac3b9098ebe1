// Random JSON schemas whose values are bounded in size, out of everything that
// docs/structured-output.md says is followed.
const kNames = ['name', 'city', 'age', 'tags', 'is_open', 'größe', 'full name', 'a"b', 'c\\d', 'id', 'kind', 'notes', 'x', 'née', '日本', 'e-mail', '$cost', 'line\nbreak', 'items', 'children'];
const kWords = ['red', 'green', 'blue', 'Ålesund', '', 'a "quoted" word', 'tab\there', 'naïve', '東京', '😀', 'null', '42'];
const kPatterns = ['^[A-Z]{2,4}-[0-9]{1,5}$', '^(yes|no|maybe)$', '^\\d{3}$', '^[a-z]+(_[a-z]+){0,2}$|^none$', '^#[0-9a-f]{6}$', '^\\w{1,12}$', '^[^"\\\\]{1,8}$', '^(\\+[0-9]{1,3} )?[0-9]{4,8}$', '^v[0-9](\\.[0-9]){0,2}(-(alpha|beta))?$'];
const kFormats = ['date', 'time', 'date-time', 'ipv4', 'ipv6', 'uuid', 'duration'];
// Patterns without an end are for the others, see `open` below.
const kEndless = new Set(['^[a-z]+(_[a-z]+){0,2}$|^none$']);

export class SchemaGenerator {
  // `open`: strings, lists and recursion without bounds may occur too.
  constructor(random, open = false) {
    this.random = random;
    this.open = open;
  }

  make() {
    this.definitions = {};
    const root = this.random.chance(0.85) ? this.object(0) : this.value(1);
    if (Object.keys(this.definitions).length) root.$defs = this.definitions;
    if (this.random.chance(0.3)) root.title = 'Something';
    return root;
  }

  value(depth) {
    const { random } = this;
    const kinds = ['string', 'string', 'enum', 'pattern', 'format', 'integer', 'integer', 'number', 'boolean', 'null', 'const', 'types'];
    if (depth < 3) kinds.push('object', 'object', 'array', 'array', 'tuple', 'any', 'one', 'all', 'reference');
    if (depth < 3 && this.open) kinds.push('chain', 'chain');
    const schema = this[random.of(kinds)](depth);
    if (random.chance(0.2)) schema.description = random.of(kWords);
    return schema;
  }

  string() {
    const { random } = this;
    const least = random.chance(0.4) ? random.between(0, 5) : undefined;
    if (this.open && random.chance(0.5)) return { type: 'string', ...(least !== undefined && { minLength: least }) };
    return { type: 'string', ...(least !== undefined && { minLength: least }), maxLength: (least ?? 0) + random.between(0, 30) };
  }

  enum() {
    const { random } = this;
    const values = new Set(Array.from({ length: random.between(1, 6) }, () => random.of([...kWords, 7, -0.5, true, null])));
    return { enum: [...values] };
  }

  const() {
    return { const: this.random.of([...kWords, 0, 12.25, false, null, [1, 'two'], { three: 3 }]) };
  }

  pattern() {
    const patterns = kPatterns.filter((pattern) => this.open || !kEndless.has(pattern));
    return { type: 'string', pattern: this.random.of(patterns) };
  }

  format() {
    return { type: 'string', format: this.random.of(this.open ? [...kFormats, 'email', 'hostname', 'uri'] : kFormats) };
  }

  integer() { return this.#numeric('integer', () => this.random.between(-1000, 1000)); }

  number() { return this.#numeric('number', () => this.random.between(-100_000, 100_000) / this.random.of([1, 8, 10, 1000])); }

  #numeric(type, limit) {
    const { random } = this;
    const [low, high] = [limit(), limit()].sort((a, b) => a - b);
    const schema = { type };
    if (random.chance(0.5)) schema[high - low > 2 && random.chance(0.3) ? 'exclusiveMinimum' : 'minimum'] = low;
    if (random.chance(0.5)) schema[high - low > 2 && random.chance(0.3) ? 'exclusiveMaximum' : 'maximum'] = high;
    return schema;
  }

  boolean() { return { type: 'boolean' }; }

  null() { return { type: 'null' }; }

  types() {
    const { random } = this;
    return { type: ['null', random.of(['boolean', 'integer', 'number'])] };
  }

  object(depth) {
    const { random } = this;
    const names = [...new Set(Array.from({ length: random.between(depth ? 0 : 1, depth ? 3 : 6) }, () => random.of(kNames)))];
    const schema = { type: 'object', properties: {} };
    for (const name of names) schema.properties[name] = this.value(depth + 1);
    const required = names.filter(() => random.chance(0.6));
    if (required.length || random.chance(0.3)) schema.required = required;
    if (!this.open || random.chance(0.5)) schema.additionalProperties = false;
    else if (random.chance(0.5)) schema.additionalProperties = this.boolean();
    return schema;
  }

  array(depth) {
    const { random } = this;
    const least = random.between(0, 2);
    const schema = { type: 'array', items: this.value(depth + 1) };
    if (least || random.chance(0.3)) schema.minItems = least;
    if (!this.open || random.chance(0.5)) schema.maxItems = least + random.between(0, 3);
    return schema;
  }

  tuple(depth) {
    const items = Array.from({ length: this.random.between(1, 3) }, () => this.value(depth + 1));
    return { type: 'array', prefixItems: items, items: false, minItems: this.random.between(0, items.length) };
  }

  any(depth) {
    return { anyOf: Array.from({ length: this.random.between(2, 3) }, () => this.value(depth + 1)) };
  }

  // Alternatives of different types, so that only one can fit.
  one(depth) {
    return { oneOf: [this.string(), this.integer(), this.object(depth + 1)].slice(0, this.random.between(2, 3)) };
  }

  all() {
    const { random } = this;
    const low = random.between(-50, 50);
    return { allOf: [{ type: 'integer', minimum: low }, { maximum: low + random.between(0, 500) }] };
  }

  reference(depth) {
    const names = Object.keys(this.definitions);
    if (names.length && this.random.chance(0.5)) return { $ref: `#/$defs/${this.random.of(names)}` };
    const definition = this.value(Math.max(depth + 1, 2)); // may define parts of its own first
    return this.#define(() => definition);
  }

  // A list of any length, each element within the one before.
  chain() {
    return this.#define((itself) => ({
      type: 'object',
      properties: { value: this.integer(), next: { anyOf: [{ $ref: itself }, { type: 'null' }] } },
      required: ['value', 'next'],
      additionalProperties: false,
    }));
  }

  #define(make) {
    const name = `part${Object.keys(this.definitions).length}`;
    this.definitions[name] = make(`#/$defs/${name}`);
    return { $ref: `#/$defs/${name}` };
  }
}
