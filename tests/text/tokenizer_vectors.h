// Files of texts, ids and what they decode to, one JSON object per line.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "text/tokenizer.h"

namespace slip {

inline std::vector<JsonObject> read_lines(const std::string& path) {
  std::vector<JsonObject> rows;
  const std::string text = read_text_file(path).value();
  for (size_t pos = 0, end; pos < text.size(); pos = end + 1) {
    end = std::min(text.find('\n', pos), text.size());
    if (end > pos)
      rows.push_back(
          parse_json(std::string_view(text).substr(pos, end - pos), path).value().as_object());
  }
  return rows;
}

inline std::string text_of(const Json& value) {
  return std::string(value.as_string().data(), value.as_string().size());
}

inline std::vector<int32_t> ids_of(const Json& value) {
  std::vector<int32_t> ids;
  for (const Json& id : value.as_array()) ids.push_back(int32_t(id.as_int64()));
  return ids;
}

// Rows of text and ids; "decoded" only where it is not the text.
inline void check_text_vectors(const Tokenizer& tokenizer, const std::string& path,
                               size_t at_least) {
  const std::vector<JsonObject> rows = read_lines(path);
  EXPECT_GE(rows.size(), at_least) << path;
  for (const JsonObject& row : rows) {
    const std::string text = text_of(row.at("text"));
    const std::vector<int32_t> ids = ids_of(row.at("ids"));
    EXPECT_EQ(tokenizer.encode(text), ids) << path << ": " << text;
    const std::string decoded = row.contains("decoded") ? text_of(row.at("decoded")) : text;
    EXPECT_EQ(tokenizer.decode(ids), decoded) << path;
    if (row.contains("decoded_skip_special")) {
      EXPECT_EQ(tokenizer.decode(ids, true), text_of(row.at("decoded_skip_special"))) << path;
    }
  }
}

inline void check_id_vectors(const Tokenizer& tokenizer, const std::string& path, size_t at_least) {
  const std::vector<JsonObject> rows = read_lines(path);
  EXPECT_GE(rows.size(), at_least) << path;
  for (const JsonObject& row : rows) {
    const std::vector<int32_t> ids = ids_of(row.at("ids"));
    EXPECT_EQ(tokenizer.decode(ids), text_of(row.at("decoded"))) << testing::PrintToString(ids);
    EXPECT_EQ(tokenizer.decode(ids, true), text_of(row.at("decoded_skip_special")))
        << testing::PrintToString(ids);
  }
}

}  // namespace slip
