// Figures in columns: what lines up, and what each style writes between them.
#include "slipstream/common/text_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slip {
namespace {

TextTable some_table() {
  TextTable table({"name", "tok/s", "gain"}, 1);
  table.add({"größer", "12.5", "1.00x"});
  table.add({"a", "1,234.0", "2.00x"});
  table.add({"b", "skipped: there is no such layer"});
  return table;
}

TEST(TextTable, LinesUpNamesAndFigures) {
  EXPECT_EQ(some_table().text(TableStyle::plain),
            "name      tok/s   gain\n"
            "größer     12.5  1.00x\n"
            "a       1,234.0  2.00x\n"
            "b       skipped: there is no such layer\n");
}

TEST(TextTable, ADocumentsLinesHaveAllCells) {
  EXPECT_EQ(some_table().text(TableStyle::markdown),
            "| name   |   tok/s |  gain |\n"
            "|---|--:|--:|\n"
            "| größer |    12.5 | 1.00x |\n"
            "| a      | 1,234.0 | 2.00x |\n"
            "| b      | skipped: there is no such layer |       |\n");
  TextTable figures({"test", "GB/s"}, 1);
  figures.add({"pp512", ""});
  EXPECT_EQ(figures.text(TableStyle::csv), "test,GB/s\npp512,\n");
}

}  // namespace
}  // namespace slip
