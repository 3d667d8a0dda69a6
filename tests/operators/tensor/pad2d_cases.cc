#include "tests/operators/tensor/border_reference.h"

namespace skiff::harness {
void AddPad2dCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, std::vector<int32_t> paddings,
                       const std::string& mode, bool nhwc) {
    OpCase made{.name = mode + "_" + name + (nhwc ? "_nhwc" : "_nchw"),
                .type = "pad2d",
                .inputs = {{"X", {x}}},
                .attrs = {{"paddings", paddings},
                          {"mode", mode},
                          {"pad_value", 2.0f},
                          {"data_format", std::string(nhwc ? "NHWC" : "NCHW")}},
                .outputs = {{"Out", 1}},
                .gradients = {"X"}};
    if (x.fixed_dtype) made.gradients.clear();
    made.reference = [paddings, mode, nhwc](const Arrays& inputs) {
      const Array& from = inputs.at("X")[0];
      const int row = nhwc ? 1 : 2;
      Shape shape = from.shape;
      shape[row] += paddings[0] + paddings[1];
      shape[row + 1] += paddings[2] + paddings[3];
      const Array out = Generated(shape, [&](std::vector<int64_t> at) {
        for (const int k : {0, 1}) {
          int64_t& place = at[static_cast<size_t>(row + k)];
          place =
              BorderSource(mode, place - paddings[static_cast<size_t>(2 * k)], from.shape[row + k]);
          if (place < 0) return 2.0;
        }
        return from.values[IndexOf(from.shape, at)];
      });
      return Arrays{{"Out", {TypedLike(out, from)}}};
    };
    cases.push_back(std::move(made));
  };
  for (const std::string mode : {"constant", "reflect", "edge"}) {
    for (const bool nhwc : {false, true}) {
      const auto images = [&](int64_t n, int64_t c, int64_t h, int64_t w, uint64_t seed) {
        return Uniform(nhwc ? Shape{n, h, w, c} : Shape{n, c, h, w}, seed);
      };
      add("every_side", images(2, 3, 4, 5, 1), {1, 2, 3, 1}, mode, nhwc);
      add("as_wide_as_it_gets", images(1, 2, 3, 4, 2), {2, 2, 3, 3}, mode, nhwc);
      add("no_border", images(1, 2, 3, 2, 3), {0, 0, 0, 0}, mode, nhwc);
      add("top_only", images(1, 2, 3, 2, 4), {2, 0, 0, 0}, mode, nhwc);
      add("right_only", images(1, 2, 3, 2, 5), {0, 0, 0, 1}, mode, nhwc);
      add("no_images", images(0, 2, 3, 2, 6), {1, 1, 1, 1}, mode, nhwc);
    }
    add("int64", Integers({1, 2, 3, 3}, 7, -9, 9), {1, 2, 0, 1}, mode, false);
    add("many", Uniform({5, 7, 33, 31}, 8), {3, 4, 5, 2}, mode, false);
    cases.back().gradients.clear();
  }
  add("wider_than_the_image", Uniform({1, 2, 2, 1}, 9), {4, 3, 5, 2}, "edge", false);
  add("empty_images", Uniform({1, 2, 0, 2}, 10), {1, 1, 0, 2}, "constant", false);
}

}  // namespace skiff::harness
