#include <algorithm>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

// A factor with its vector dim filled in, as [batch..., rows, columns].
Shape AsMatrices(const Shape& shape, bool is_left) {
  if (shape.rank() > 1) return shape;
  return is_left ? Shape{1, shape[0]} : Shape{shape[0], 1};
}

// The offset of a factor's matrix for the batch index; `batch` is the broadcast batch.
int64_t MatrixOffset(const Shape& factor, const Shape& batch, int64_t index) {
  const int own = factor.rank() - 2;
  int64_t offset = 0;
  int64_t stride = factor.dim(-1) * factor.dim(-2);
  for (int axis = batch.rank() - 1; axis >= 0; --axis) {
    const int64_t i = index % batch[axis];
    index /= batch[axis];
    const int place = axis - (batch.rank() - own);
    if (place < 0) continue;
    if (factor[place] != 1) offset += i * stride;
    stride *= factor[place];
  }
  return offset;
}

Shape BroadcastBatch(const Shape& x, const Shape& y) {
  const int rank = std::max(x.rank(), y.rank()) - 2;
  Shape batch;
  for (int axis = 0; axis < rank; ++axis) {
    const int in_x = axis - (rank + 2 - x.rank());
    const int in_y = axis - (rank + 2 - y.rank());
    const int64_t a = in_x < 0 ? 1 : x[in_x];
    const int64_t b = in_y < 0 ? 1 : y[in_y];
    batch.Append(a == 1 ? b : a);
  }
  return batch;
}

Arrays MatmulV2Reference(const Arrays& inputs, bool trans_x, bool trans_y) {
  const Array& x = inputs.at("X")[0];
  const Array& y = inputs.at("Y")[0];
  const Shape xs = AsMatrices(x.shape, true);
  const Shape ys = AsMatrices(y.shape, false);
  const bool tx = trans_x && x.shape.rank() > 1;
  const bool ty = trans_y && y.shape.rank() > 1;
  const int64_t m = xs.dim(tx ? -1 : -2);
  const int64_t k = xs.dim(tx ? -2 : -1);
  const int64_t n = ys.dim(ty ? -2 : -1);
  const Shape batch = BroadcastBatch(xs, ys);
  std::vector<double> out;
  for (int64_t index = 0; index < batch.element_count(); ++index) {
    const double* a = x.values.data() + MatrixOffset(xs, batch, index);
    const double* b = y.values.data() + MatrixOffset(ys, batch, index);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += a[tx ? p * m + i : i * k + p] * b[ty ? j * k + p : p * n + j];
        }
        out.push_back(sum);
      }
    }
  }
  Shape shape = batch;
  if (x.shape.rank() > 1) shape.Append(m);
  if (y.shape.rank() > 1) shape.Append(n);
  return {{"Out", {Values(shape, out)}}};
}

OpCase MatmulV2Case(const std::string& name, const Shape& x, const Shape& y, bool trans_x = false,
                    bool trans_y = false) {
  OpCase result{
      .name = name,
      .type = "matmul_v2",
      .inputs = {{"X", {Uniform(x, 3)}}, {"Y", {Uniform(y, 4)}}},
      .attrs = {{"trans_x", trans_x}, {"trans_y", trans_y}},
      .reference =
          [=](const Arrays& inputs) { return MatmulV2Reference(inputs, trans_x, trans_y); },
      .outputs = {{"Out", 1}},
      .gradients = {"X", "Y"}};
  return result;
}

}  // namespace

void AddMatmulV2Cases(CaseList& cases) {
  cases.push_back(MatmulV2Case("matrices", {5, 7}, {7, 3}));
  cases.push_back(MatmulV2Case("matrices_trans_x", {7, 5}, {7, 3}, true));
  cases.push_back(MatmulV2Case("matrices_trans_y", {5, 7}, {3, 7}, false, true));
  cases.push_back(MatmulV2Case("matrices_trans_both", {7, 5}, {3, 7}, true, true));
  cases.push_back(MatmulV2Case("batch", {2, 3, 4, 5}, {2, 3, 5, 6}));
  cases.push_back(MatmulV2Case("batch_trans_x", {2, 3, 5, 4}, {2, 3, 5, 6}, true));
  cases.push_back(MatmulV2Case("batch_trans_y", {2, 3, 4, 5}, {2, 3, 6, 5}, false, true));
  cases.push_back(MatmulV2Case("batch_trans_both", {3, 5, 4}, {3, 6, 5}, true, true));
  cases.push_back(MatmulV2Case("one_y_for_all", {3, 4, 5}, {5, 6}));
  cases.push_back(MatmulV2Case("one_y_for_all_trans_x", {3, 5, 4}, {5, 6}, true));
  cases.push_back(MatmulV2Case("one_y_for_all_trans_y", {3, 4, 5}, {6, 5}, false, true));
  cases.push_back(MatmulV2Case("one_x_for_all", {4, 5}, {3, 5, 6}));
  cases.push_back(MatmulV2Case("one_x_for_all_trans_both", {5, 4}, {3, 6, 5}, true, true));
  cases.push_back(MatmulV2Case("broadcast_both", {2, 1, 3, 4}, {1, 3, 4, 2}));
  cases.push_back(MatmulV2Case("broadcast_both_trans", {2, 1, 4, 3}, {3, 2, 4}, true, true));
  cases.push_back(MatmulV2Case("broadcast_outer_and_inner", {2, 3, 1, 2, 2}, {1, 3, 2, 2, 2}));
  cases.push_back(MatmulV2Case("broadcast_ends", {1, 3, 1, 2, 3}, {2, 3, 2, 3, 2}));
  cases.push_back(MatmulV2Case("vectors", {7}, {7}));
  cases.push_back(MatmulV2Case("vector_times_matrix", {4}, {4, 3}));
  cases.push_back(MatmulV2Case("vector_times_batch", {4}, {2, 4, 3}));
  cases.push_back(MatmulV2Case("matrix_times_vector", {3, 4}, {4}));
  cases.push_back(MatmulV2Case("batch_times_vector", {2, 3, 4}, {4}));
  cases.push_back(MatmulV2Case("batch_times_vector_trans_x", {2, 4, 3}, {4}, true));
  cases.push_back(MatmulV2Case("several_blocks", {2, 35, 68}, {2, 68, 66}));
  cases.push_back(MatmulV2Case("empty_batch", {0, 3, 4}, {0, 4, 2}));
  cases.push_back(MatmulV2Case("empty_batch_of_x", {0, 3, 4}, {4, 2}));
  cases.push_back(MatmulV2Case("nothing_to_sum", {2, 3, 0}, {2, 0, 2}));
  OpCase attention = MatmulV2Case("attention_96x128x64", {96, 128, 64}, {96, 128, 64}, false, true);
  attention.benchmark_only = true;
  cases.push_back(attention);
}

}  // namespace skiff::harness
