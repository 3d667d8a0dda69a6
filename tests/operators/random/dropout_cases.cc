#include <cmath>
#include <string>

#include "framework/base/error.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

struct Expected {
  double probability = 0.5;
  bool upscale = false;
  bool is_test = false;

  double scale() const {
    if (is_test) return upscale ? 1.0 : 1.0 - probability;
    return upscale && probability < 1 ? 1.0 / (1.0 - probability) : 1.0;
  }
};

// Out agrees with Mask, and Mask drops about as many elements as it should.
void CheckDropout(const Expected& expected, const Array& x, const Array& out, const Array& mask) {
  double kept = 0;
  for (size_t i = 0; i < x.values.size(); ++i) {
    const double wanted = mask.values[i] * x.values[i] * expected.scale();
    SKIFF_ENFORCE(std::abs(out.values[i] - wanted) <= 1e-6 * std::abs(wanted), kInvalidArgument,
                  "Out[", i, "] = ", out.values[i], ", expected ", wanted);
    SKIFF_ENFORCE(mask.values[i] == 0 || mask.values[i] == 1, kInvalidArgument, "Mask[", i,
                  "] = ", mask.values[i]);
    kept += mask.values[i];
  }
  const double count = static_cast<double>(x.values.size());
  const double p = expected.is_test ? 0.0 : expected.probability;
  const double allowed = 5 * std::sqrt(p * (1 - p) * count);
  SKIFF_ENFORCE(std::abs(kept - (1 - p) * count) <= allowed, kOutOfRange, kept, " of ", count,
                " elements kept with probability ", 1 - p);
}

OpCase DropoutCase(const std::string& name, const Shape& shape, const Expected& expected) {
  OpCase made{.name = name,
              .type = "dropout",
              .inputs = {{"X", {Uniform(shape, 1, 0.5, 1.5)}}},
              .attrs = {{"dropout_prob", static_cast<float>(expected.probability)},
                        {"dropout_implementation",
                         std::string(expected.upscale ? "upscale_in_train" : "downgrade_in_infer")},
                        {"is_test", expected.is_test}},
              .outputs = {{"Out", 1}, {"Mask", 1}},
              .gradients = {"X"},
              .loss_outputs = {"Out"},
              .accepted_wrong_inputs = {
                  {"Out@GRAD", "other dtype", "nothing but the gradient tells the dtype of X"}}};
  made.check = [expected](const Arrays& inputs, const Arrays& outputs) {
    CheckDropout(expected, inputs.at("X")[0], outputs.at("Out")[0], outputs.at("Mask")[0]);
  };
  return made;
}

}  // namespace

void AddDropoutCases(CaseList& cases) {
  for (const bool upscale : {false, true}) {
    const std::string mode = upscale ? "upscale" : "downgrade";
    const auto add = [&](const std::string& name, const Shape& shape, double p, bool is_test) {
      cases.push_back(DropoutCase(mode + "_" + name, shape, {p, upscale, is_test}));
    };
    add("half", {6, 7}, 0.5, false);
    add("quarter_of_many", {211, 97}, 0.25, false);
    cases.back().gradients.clear();
    add("nothing", {3, 5}, 0.0, false);
    add("everything", {3, 5}, 1.0, false);
    add("is_test", {3, 5}, 0.25, true);
    add("is_test_everything", {3, 5}, 1.0, true);
    add("empty", {0, 5}, 0.5, false);
    add("images", {2, 17, 5, 7}, 0.5, false);
    add("images_is_test", {2, 17, 5, 7}, 0.25, true);
    add("images_everything", {2, 17, 5, 7}, 1.0, false);
    add("no_images", {0, 17, 5, 7}, 0.5, false);
  }
  const auto add_seed = [&](const std::string& name, int64_t seed, DType dtype) {
    OpCase seeded = DropoutCase(name, {5, 9}, {0.5, true, false});
    seeded.inputs["Seed"] = {Values({1}, {static_cast<double>(seed)}, dtype)};
    cases.push_back(std::move(seeded));
  };
  add_seed("seed_int32", 7, DType::kInt32);
  add_seed("seed_int64", 7, DType::kInt64);
  add_seed("seed_of_0", 0, DType::kInt32);
  OpCase no_mask = DropoutCase("without_mask", {4, 5}, {0.25, true, true});
  no_mask.outputs = {{"Out", 1}};
  no_mask.gradients.clear();
  no_mask.check = nullptr;
  no_mask.reference = [](const Arrays& inputs) { return Arrays{{"Out", inputs.at("X")}}; };
  cases.push_back(std::move(no_mask));
  OpCase bert = DropoutCase("bert_hidden", {16, 128, 768}, {0.1, true, false});
  bert.benchmark_only = true;
  cases.push_back(std::move(bert));
}

}  // namespace skiff::harness
