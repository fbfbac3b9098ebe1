#include "weights/row_table.h"

#include <gtest/gtest.h>

namespace slip {
namespace {

TEST(RowTable, UploadsInPiecesOfWholeRows) {
  constexpr int64_t kRows = 9, kColumns = 5;
  const WeightInfo info{WeightFormat::f32, kRows, kColumns, 0};
  RowTable table;
  table.owned = Buffer(host_memory(), plain_bytes(info));
  table.weight = plain_weight(info, table.owned.data());
  for (int64_t i = 0; i < kRows * kColumns; ++i) table.weight.values.f32()[i] = float(i);
  const std::vector<int32_t> ids = {8, 0, 3, 3, 7, 1, 2};
  for (const size_t values : {5, 7, 14, 1000}) {  // one row, more than one, two, all
    table.gathered = Buffer(host_memory(), values * sizeof(float));
    const Tensor rows(host_memory(), DType::f32, {int64_t(ids.size()), kColumns});
    table.upload(ids, host_memory(), rows.view.data);
    for (size_t i = 0; i < ids.size() * kColumns; ++i)
      EXPECT_EQ(rows.view.f32()[i], float(size_t(ids[i / kColumns]) * kColumns + i % kColumns));
  }
}

}  // namespace
}  // namespace slip
