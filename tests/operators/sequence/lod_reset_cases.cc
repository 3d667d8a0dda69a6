#include "tests/operators/half_case.h"
#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

struct LodResetSetting {
  std::vector<int32_t> target_lod = {};
  bool append = false;
};

std::vector<uint64_t> LevelOf(const Arrays& inputs, const LodResetSetting& setting) {
  const auto y = inputs.find("Y");
  if (y == inputs.end()) return {setting.target_lod.begin(), setting.target_lod.end()};
  std::vector<uint64_t> level;
  for (const double offset : y->second[0].values) level.push_back(static_cast<uint64_t>(offset));
  return level;
}

Arrays LodResetReference(const Arrays& inputs, const LodResetSetting& setting) {
  Array out = inputs.at("X")[0];
  const auto y = inputs.find("Y");
  if (y != inputs.end() && !y->second[0].lod.empty()) {
    out.lod = y->second[0].lod;
  } else {
    if (!setting.append) out.lod.clear();
    out.lod.push_back(LevelOf(inputs, setting));
  }
  return {{"Out", {out}}};
}

OpCase LodResetCase(const std::string& name, Arrays inputs, const LodResetSetting& setting = {}) {
  OpCase made{.name = name,
              .type = "lod_reset",
              .inputs = std::move(inputs),
              .reference = [=](const Arrays& given) { return LodResetReference(given, setting); },
              .outputs = {{"Out", 1}},
              .gradients = {"X"}};
  if (!setting.target_lod.empty()) made.attrs["target_lod"] = setting.target_lod;
  if (setting.append) made.attrs["append"] = true;
  return made;
}

Array Offsets(std::vector<double> offsets) {
  const Shape shape = {static_cast<int64_t>(offsets.size())};
  return Values(shape, std::move(offsets), DType::kInt32);
}

}  // namespace

void AddLodResetCases(CaseList& cases) {
  const auto add = [&](const std::string& name, Arrays inputs,
                       const LodResetSetting& setting = {}) {
    cases.push_back(LodResetCase(name, std::move(inputs), setting));
  };
  const Array plain = Uniform({6, 2}, 1);
  const Array ragged = Ragged(Uniform({6, 2}, 2), {2, 3, 1});
  add("target", {{"X", {plain}}}, {.target_lod = {0, 4, 4, 6}});
  cases.push_back(InHalf(cases.back()));
  add("target_of_ragged", {{"X", {ragged}}}, {.target_lod = {0, 6}});
  add("target_of_vector", {{"X", {Uniform({6}, 3)}}}, {.target_lod = {0, 1, 6}});
  add("target_of_nothing", {{"X", {Uniform({0, 2}, 4)}}}, {.target_lod = {0, 0, 0}});
  add("as_y", {{"X", {plain}}, {"Y", {Ragged(Uniform({6, 1}, 5), {5, 0, 1})}}});
  add("as_short_y", {{"X", {Uniform({2, 2}, 14)}}, {"Y", {Ragged(Uniform({2, 1}, 15), {2})}}});
  add("as_y_of_two_levels",
      {{"X", {ragged}}, {"Y", {Ragged(Uniform({6, 1}, 6), {1, 2}, {3, 2, 1})}}});
  add("as_y_despite_append", {{"X", {ragged}}, {"Y", {Ragged(Uniform({6, 1}, 7), {5, 1})}}},
      {.append = true});
  add("data_of_y", {{"X", {ragged}}, {"Y", {Offsets({0, 2, 6})}}});
  cases.push_back(InHalf(cases.back()));
  OpCase gradient = InHalf(cases.back());
  gradient.name = "gradient_in_half";
  gradient.type = "lod_reset_grad";
  gradient.inputs = {{"X", {ragged}}, {"Out@GRAD", {Ragged(Uniform({6, 2}, 16), {2, 4})}}};
  gradient.outputs = {{"X@GRAD", 1}};
  gradient.reference = [lod = ragged.lod](const Arrays& inputs) {
    Array x_grad = inputs.at("Out@GRAD")[0];
    x_grad.lod = lod;
    return Arrays{{"X@GRAD", {x_grad}}};
  };
  cases.push_back(gradient);
  add("data_of_short_y", {{"X", {Ragged(Uniform({4, 2}, 13), {4})}}, {"Y", {Offsets({0, 4})}}});
  add("data_instead_of_target", {{"X", {plain}}, {"Y", {Offsets({0, 2, 6})}}},
      {.target_lod = {0, 9}});
  // Each row of X becomes a sequence.
  add("append", {{"X", {ragged}}}, {.target_lod = {0, 0, 2, 3, 4, 5, 6}, .append = true});
  add("append_to_plain", {{"X", {plain}}}, {.target_lod = {0, 2, 6}, .append = true});
  add("append_to_two_levels", {{"X", {Ragged(Uniform({3, 2}, 8), {1, 1}, {2, 1})}}},
      {.target_lod = {0, 1, 1, 3}, .append = true});
  add("append_data", {{"X", {Ragged(Uniform({3, 2}, 9), {2, 1})}}, {"Y", {Offsets({0, 0, 1, 3})}}},
      {.append = true});
  add("large", {{"X", {Uniform({300, 700}, 10)}}}, {.target_lod = {0, 100, 300}});
  add("int64", {{"X", {Integers({6, 2}, 11, -9, 9)}}}, {.target_lod = {0, 6}});
  cases.back().gradients.clear();
  add("benchmark", {{"X", {Uniform({8192, 128}, 12)}}}, {.target_lod = {0, 8192}});
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
