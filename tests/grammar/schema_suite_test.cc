// The JSON Schema test suite (Debian: json-schema-test-suite), where it is installed: valid
// instances, written as this grammar writes JSON, are accepted, invalid ones are not.
#include <cstdio>
#include <filesystem>
#include <set>

#include "base/files.h"
#include "grammar/characters.h"
#include "grammar/schema_keywords.h"
#include "tests/grammar/answers.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

// Where the grammar is narrower than the schema on purpose: members come in the schema's order,
// keywords that speak of one type imply it, and keywords beside $ref count, as since 2019-09.
bool is_narrower_on_purpose(const std::string& name, const Json& schema, const Json& instance) {
  if (name == "ref.json: root pointer ref" ||
      name == "ref.json: ref overrides any sibling keywords")
    return true;
  if (instance.is_object() && instance.get_object().size() > 1) return true;
  return schema.is_object() && !schema_types(schema.get_object()).value().contains(instance);
}

struct Counts {
  int accepted = 0;
  int rejected = 0;
  int refused_schemas = 0;
  int narrower = 0;
};

void run_group(const JsonObject& group, const std::string& file, Counts& counts) {
  const Json& schema = group.at("schema");
  const std::string name = cat(file, ": ", std::string(group.at("description").get_string()));
  Result<std::unique_ptr<Constraint>> made = try_constraint(spec_of_schema(schema));
  if (!made.ok()) {
    ++counts.refused_schemas;
    const bool unsatisfiable = made.failure().message.find("no finite") != std::string::npos;
    for (const Json& test : group.at("tests").get_array())
      EXPECT_FALSE(unsatisfiable && test.at("valid").get_bool()) << name;
    return;
  }
  for (const Json& test : group.at("tests").get_array()) {
    const std::string text = compact_json(test.at("data"));
    const std::unique_ptr<Constraint> constraint = made.value()->clone();
    const bool accepted =
        accepted_bytes(*constraint, text) == text.size() && constraint->allows(stop_id());
    if (!test.at("valid").get_bool()) {
      EXPECT_FALSE(accepted) << name << ": " << text << "\n" << dump_json(schema);
      counts.rejected += !accepted;
    } else if (accepted) {
      ++counts.accepted;
    } else {
      ++counts.narrower;
      EXPECT_TRUE(is_narrower_on_purpose(name, schema, test.at("data"))) << name << ": " << text;
    }
  }
}

TEST(SchemaSuite, InstalledCases) {
  const fs::path root = "/usr/share/json-schema-test-suite/tests";
  fs::path folder;
  for (const char* draft : {"draft2020-12", "draft7"})
    if (folder.empty() && fs::exists(root / draft)) folder = root / draft;
  if (folder.empty())
    GTEST_SKIP() << "NOT RUN: the package json-schema-test-suite is not installed";
  const std::set<std::string> files = {
      "additionalItems.json",
      "additionalProperties.json",
      "allOf.json",
      "anyOf.json",
      "boolean_schema.json",
      "const.json",
      "default.json",
      "enum.json",
      "exclusiveMaximum.json",
      "exclusiveMinimum.json",
      "items.json",
      "maxItems.json",
      "maxLength.json",
      "maximum.json",
      "minItems.json",
      "minLength.json",
      "minimum.json",
      "pattern.json",
      "prefixItems.json",
      "properties.json",
      "ref.json",
      "required.json",
      "type.json",
  };
  Counts counts;
  for (const std::string& file : files) {
    if (!fs::exists(folder / file)) continue;
    const Json groups =
        parse_json(read_text_file(folder / file).value(), (folder / file).string()).value();
    for (const Json& group : groups.get_array()) run_group(group.get_object(), file, counts);
  }
  std::printf("accepted %d valid, rejected %d invalid; %d schemas refused; %d valid not written\n",
              counts.accepted, counts.rejected, counts.refused_schemas, counts.narrower);
  EXPECT_GT(counts.accepted, 80);
  EXPECT_GT(counts.rejected, 80);
}

}  // namespace
}  // namespace slip
