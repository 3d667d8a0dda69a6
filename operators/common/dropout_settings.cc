#include "operators/common/dropout_settings.h"

#include <string>

#include "framework/base/error.h"
#include "operators/common/philox_words.h"

namespace skiff {
namespace {

constexpr const char* kImplementation = "dropout_implementation";
constexpr const char* kUpscales = "upscale_in_train";

bool IsProbability(const Attribute& attribute) {
  const float p = std::get<float>(attribute);
  return p >= 0.0f && p <= 1.0f;
}

}  // namespace

double DropoutSettings::scale() const {
  if (is_test) return upscale ? 1.0 : 1.0 - probability;
  return upscale && probability < 1.0 ? 1.0 / (1.0 - probability) : 1.0;
}

uint32_t DropoutSettings::threshold() const { return DropThreshold(probability); }

RandomKey DropoutSettings::KeyOf(const KernelContext& run) const {
  RandomKey key = run.random_key();
  if (!fixed_seed) return key;
  key.seed = static_cast<uint64_t>(seed);
  key.op_id = 0;
  return key;
}

DropoutSettings DropoutSettingsOf(const OpContext& context) {
  const int64_t seed = context.IntAttr("seed");
  const bool has_choice = context.def().FindAttr(kImplementation) != nullptr;
  return {.probability = context.Attr<float>("dropout_prob"),
          .is_test = context.Attr<bool>("is_test"),
          .upscale = !has_choice || context.Attr<std::string>(kImplementation) == kUpscales,
          .seed = seed,
          .fixed_seed = seed != 0 || context.Attr<bool>("fix_seed")};
}

std::vector<AttrDef> DropoutAttrs(float default_probability) {
  return {{.name = "dropout_prob",
           .type = AttrType::kFloat,
           .default_value = default_probability,
           .doc = "The probability of an element to be dropped.",
           .accepts = IsProbability,
           .expected = "a probability in [0, 1]",
           .refusal = ErrorCode::kOutOfRange},
          {.name = "is_test",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "Evaluation: nothing is dropped."},
          ChoiceAttr(kImplementation, "downgrade_in_infer", {kUpscales, "downgrade_in_infer"},
                     "Where the factor 1 - p is made good: \"upscale_in_train\" or "
                     "\"downgrade_in_infer\"."),
          {.name = "fix_seed",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "Draw by `seed` instead of the run's seed, even if it is 0."},
          {.name = "seed",
           .type = AttrType::kInt,
           .default_value = int32_t{0},
           .doc = "Not 0: draw by this seed, the same in every op that has it."}};
}

std::vector<AttrDef> UpscaledDropoutAttrs() {
  std::vector<AttrDef> attrs = DropoutAttrs(/*default_probability=*/0.0f);
  std::erase_if(attrs, [](const AttrDef& attr) { return attr.name == kImplementation; });
  attrs[0].doc = StrCat(attrs[0].doc, " The others are divided by 1 - dropout_prob in training.");
  attrs[0].accepts = [](const Attribute& value) {
    return IsProbability(value) && std::get<float>(value) < 1.0f;
  };
  attrs[0].expected = "a probability in [0, 1)";
  return attrs;
}

}  // namespace skiff
