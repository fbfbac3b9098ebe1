// The class behind add_schema(); schema_object.cc, schema_array.cc and schema_scalar.cc have the
// parts that speak of one type.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "grammar/json_rules.h"
#include "grammar/schema.h"
#include "grammar/schema_keywords.h"

namespace slip {

class SchemaCompiler {
 public:
  SchemaCompiler(JsonRules& json, const Json& root, const SchemaOptions& options,
                 const SchemaWriter* write = nullptr)
      : json_(json), rules_(json.rules()), root_(root), options_(options), write_(write) {}

  // A call of the rule that describes the schema's values; each schema gets one rule.
  Result<ExprId> value_of(const Json& schema, const std::string& path);

 private:
  Result<ExprId> any_value();
  Result<ExprId> compile(const Json& schema, const std::string& path);
  Result<ExprId> compile_object_schema(const JsonObject& schema, const std::string& path);
  Status check_keywords(const JsonObject& schema, const std::string& path) const;

  // Keywords that mean other schemas.
  Result<const Json*> resolve(const Json& reference, const std::string& path) const;
  Result<ExprId> compile_reference(const JsonObject& schema, const std::string& path);
  Result<ExprId> compile_all_of(const JsonObject& schema, const std::string& path);
  Result<ExprId> compile_any_of(const JsonObject& schema, const std::string& keyword,
                                const std::string& path);
  // A schema that was made here, not read; lives as long as the compiler. Equal ones are one, so
  // that references back to what is being made come to an end.
  Result<const Json*> keep(Json schema);

  Result<ExprId> compile_enum(const JsonObject& schema, const std::string& path);
  Result<ExprId> compile_types(const JsonObject& schema, const TypeSet& types,
                               const std::string& path);

  Result<ExprId> compile_string(const JsonObject& schema, const std::string& path);
  Result<ExprId> compile_number(const JsonObject& schema, bool integer, const std::string& path);

  struct Property {
    std::string name;
    const Json* schema;
    bool required;
  };
  Result<std::vector<Property>> read_properties(const JsonObject& schema, const std::string& path);
  Result<ExprId> compile_object(const JsonObject& schema, const std::string& path);
  Result<ExprId> other_member(const JsonObject& schema, const std::vector<Property>& properties,
                              bool& exists, const std::string& path);
  Status check_property_counts(const JsonObject& schema, const std::vector<Property>& properties,
                               bool has_others, const std::string& path) const;

  Result<ExprId> compile_array(const JsonObject& schema, const std::string& path);

  JsonRules& json_;
  Rules& rules_;
  const Json& root_;
  SchemaOptions options_;
  const SchemaWriter* write_;  // null: values are JSON
  std::unordered_map<const Json*, RuleId> rule_of_;
  std::unordered_map<std::string, Json> made_;  // by their text
  int depth_ = 0;
};

}  // namespace slip
