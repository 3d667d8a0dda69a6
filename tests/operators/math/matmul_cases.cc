#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

struct MatmulSpec {
  std::string name;
  Shape x;
  Shape y;
  Shape out;  // as expected
  bool transpose_x = false;
  bool transpose_y = false;
  float alpha = 1;
  bool benchmark_only = false;
};

// A factor as [batch, rows, columns]; a vector is a row on the left, a column on the right.
struct Matrices {
  int64_t batch = 1;
  int64_t rows = 1;
  int64_t columns = 1;
  bool transposed = false;

  int64_t height() const { return transposed ? columns : rows; }
  int64_t width() const { return transposed ? rows : columns; }
  size_t Index(int64_t b, int64_t row, int64_t column) const {
    const int64_t matrix = batch == 1 ? 0 : b * rows * columns;
    return static_cast<size_t>(matrix +
                               (transposed ? column * columns + row : row * columns + column));
  }
};

Matrices MatricesOf(const Shape& shape, bool transposed, bool is_left) {
  if (shape.rank() == 1) {
    return {.rows = is_left ? 1 : shape[0],
            .columns = is_left ? shape[0] : 1,
            .transposed = transposed};
  }
  return {.batch = shape.element_count(0, shape.rank() - 2),
          .rows = shape.dim(-2),
          .columns = shape.dim(-1),
          .transposed = transposed};
}

Arrays MatmulReference(const MatmulSpec& spec, const Arrays& inputs) {
  const LazyValues& x = inputs.at("X")[0].values;
  const LazyValues& y = inputs.at("Y")[0].values;
  const Matrices a = MatricesOf(spec.x, spec.transpose_x, true);
  const Matrices b = MatricesOf(spec.y, spec.transpose_y, false);
  const bool is_empty = a.batch == 0 || b.batch == 0;
  std::vector<double> out;
  for (int64_t batch = 0; !is_empty && batch < std::max(a.batch, b.batch); ++batch) {
    for (int64_t i = 0; i < a.height(); ++i) {
      for (int64_t j = 0; j < b.width(); ++j) {
        double sum = 0;
        for (int64_t p = 0; p < a.width(); ++p) {
          sum += x[a.Index(batch, i, p)] * y[b.Index(batch, p, j)];
        }
        out.push_back(static_cast<double>(spec.alpha) * sum);
      }
    }
  }
  return {{"Out", {Values(spec.out, out)}}};
}

OpCase MatmulCase(const MatmulSpec& spec) {
  return {.name = spec.name,
          .type = "matmul",
          .inputs = {{"X", {Uniform(spec.x, 3)}}, {"Y", {Uniform(spec.y, 4)}}},
          .attrs = {{"transpose_X", spec.transpose_x},
                    {"transpose_Y", spec.transpose_y},
                    {"alpha", spec.alpha}},
          .reference = [spec](const Arrays& inputs) { return MatmulReference(spec, inputs); },
          .outputs = {{"Out", 1}},
          .gradients = {"X", "Y"},
          .benchmark_only = spec.benchmark_only};
}

}  // namespace

void AddMatmulCases(CaseList& cases) {
  const bool yes = true;
  const std::vector<MatmulSpec> specs = {
      {"matrices", {5, 7}, {7, 3}, {5, 3}},
      {"matrices_transpose_x", {7, 5}, {7, 3}, {5, 3}, yes},
      {"matrices_transpose_y", {5, 7}, {3, 7}, {5, 3}, false, yes},
      {"matrices_transpose_both", {7, 5}, {3, 7}, {5, 3}, yes, yes},
      {"alpha", {5, 7}, {7, 3}, {5, 3}, false, false, 0.25f},
      {"alpha_transpose_both", {2, 7, 5}, {2, 3, 7}, {2, 5, 3}, yes, yes, -2.5f},
      {"alpha_transpose_x", {7, 5}, {2, 7, 3}, {2, 5, 3}, yes, false, 3.0f},
      {"batch", {2, 3, 4, 5}, {2, 3, 5, 6}, {2, 3, 4, 6}},
      {"batch_transpose_y", {2, 3, 4, 5}, {2, 3, 6, 5}, {2, 3, 4, 6}, false, yes},
      {"batch_of_other_dims", {2, 3, 4, 5}, {6, 5, 2}, {2, 3, 4, 2}},
      {"batch_of_other_dims_in_y", {6, 4, 5}, {3, 2, 5, 2}, {6, 4, 2}},
      {"one_y_for_all", {3, 4, 5}, {5, 6}, {3, 4, 6}},
      {"one_y_for_all_dims", {2, 3, 4, 5}, {5, 6}, {2, 3, 4, 6}},
      {"one_x_for_all", {4, 5}, {3, 5, 6}, {3, 4, 6}},
      {"vectors", {7}, {7}, {}},
      {"vectors_as_columns_and_rows", {3}, {4}, {3, 4}, yes, yes},
      {"one_element_by_row", {1}, {3}, {3}, false, yes},
      {"column_by_one_element", {3}, {1}, {3}, yes},
      {"vector_times_matrix", {4}, {4, 3}, {3}},
      {"column_times_row", {4}, {1, 3}, {4, 3}, yes},
      {"vector_times_batch", {4}, {2, 4, 3}, {2, 3}},
      {"column_times_batch", {4}, {2, 1, 3}, {2, 4, 3}, yes},
      {"vector_times_columns", {4}, {2, 4, 1}, {2, 1}},
      {"matrix_times_vector", {3, 4}, {4}, {3}},
      {"row_times_vector", {1, 4}, {4}, {1}},
      {"column_times_vector_as_row", {3, 1}, {4}, {3, 4}, false, yes},
      {"batch_times_vector", {2, 3, 4}, {4}, {2, 3}},
      {"rows_times_vector", {2, 1, 4}, {4}, {2, 1}},
      {"batch_of_dims_times_vector", {2, 2, 3, 4}, {4}, {2, 2, 3}},
      {"empty_batch", {0, 3, 4}, {0, 4, 2}, {0, 3, 2}},
      {"nothing_to_sum", {2, 3, 0}, {2, 0, 2}, {2, 3, 2}},
      {"attention_96x128x64",
       {96, 128, 64},
       {96, 128, 64},
       {96, 128, 128},
       false,
       yes,
       0.125f,
       yes},
  };
  for (const MatmulSpec& spec : specs) cases.push_back(MatmulCase(spec));
}

}  // namespace skiff::harness
