// The smallest value that a JSON schema allows.
export function exampleOf(schema) {
  if (schema === true || schema === undefined) return null;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf) return exampleOf(schema.anyOf[0]);
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case 'string': return 'text'.padEnd(schema.minLength ?? 0, 'x').slice(0, schema.maxLength ?? 100);
    case 'integer':
    case 'number': return schema.minimum ?? 0;
    case 'boolean': return true;
    case 'array': return Array.from({ length: schema.minItems ?? 1 }, () => exampleOf(schema.items));
    case 'object': {
      const names = schema.required ?? Object.keys(schema.properties ?? {});
      return Object.fromEntries(names.map((name) => [name, exampleOf(schema.properties?.[name])]));
    }
    default: return null;
  }
}
