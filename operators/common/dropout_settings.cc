#include "operators/common/dropout_settings.h"

#include <string>

#include "framework/base/error.h"
#include "operators/common/philox_words.h"

namespace skiff {
namespace {

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
  return DropoutStream(run.random_key(), seed, fixed_seed);
}

DropoutSettings DropoutSettingsOf(const OpContext& context) {
  const int64_t seed = context.IntAttr("seed");
  return {.probability = context.Attr<float>("dropout_prob"),
          .is_test = context.Attr<bool>("is_test"),
          .upscale = context.Attr<std::string>("dropout_implementation") == "upscale_in_train",
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
          ChoiceAttr("dropout_implementation", "downgrade_in_infer",
                     {"upscale_in_train", "downgrade_in_infer"},
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

}  // namespace skiff
