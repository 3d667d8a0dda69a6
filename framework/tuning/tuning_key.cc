#include "framework/tuning/tuning_key.h"

#include <string_view>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/ir/text.h"

namespace skiff {
namespace {

std::string AttributesText(const OpContext& context) {
  std::vector<std::string> texts;
  for (const AttrDef& attr : context.def().attrs) {
    const Attribute* value = EffectiveAttr(context.op(), attr);
    if (value != nullptr) texts.push_back(StrCat(attr.name, " = ", PrintAttribute(*value)));
  }
  return "{" + Join(texts, ", ") + "}";
}

// "X=float32 [2, 3] plain"; an argument that is absent is left out.
template <typename IndexOf, typename Describe>
std::string ArgumentsText(const std::vector<SlotDef>& slots, const IndexOf& index_of,
                          size_t arguments, const Describe& describe) {
  std::vector<std::string> texts;
  for (const SlotDef& slot : slots) {
    for (size_t i = 0; i < arguments; ++i) {
      const int index = index_of(slot.name, i);
      if (index < 0) continue;
      texts.push_back(StrCat(slot.name, slot.duplicable ? StrCat("[", i, "]") : "", "=",
                             describe(slot, index)));
    }
  }
  return Join(texts, ", ");
}

std::string MetaText(const TensorMeta& meta) {
  return StrCat(meta.dtype, " ", meta.shape, " ", meta.layout);
}

constexpr std::string_view kThreads = ", threads=";

std::string ThreadsText() { return StrCat(kThreads, omp_get_max_threads()); }

}  // namespace

std::string TuningKey(const TuningRequest& request) {
  const OpContext& context = request.context;
  const std::string inputs = ArgumentsText(
      context.def().inputs,
      [&](std::string_view slot, size_t i) { return context.InputIndex(slot, i); },
      context.inputs().size(),
      [&](const SlotDef& slot, int index) {
        const auto i = static_cast<size_t>(index);
        const TensorMeta& meta = context.inputs()[i];
        // Kernels don't see the layout of such an input.
        if (slot.shape_only) return StrCat(meta.dtype, " ", meta.shape);
        return MetaText(meta) + (request.is_constant[i] ? " constant" : "");
      });
  const std::string outputs = ArgumentsText(
      context.def().outputs,
      [&](std::string_view slot, size_t i) { return context.OutputIndex(slot, i); },
      context.outputs().size(),
      [&](const SlotDef&, int index) {
        return MetaText(context.outputs()[static_cast<size_t>(index)]);
      });
  return StrCat(context.op().type, " ", AttributesText(context), " ", inputs, " -> ", outputs,
                ThreadsText());
}

std::string_view WithoutThreads(std::string_view key) { return key.substr(0, key.rfind(kThreads)); }

std::string ShortTuningKey(const TuningRequest& request) {
  std::vector<std::string> inputs;
  for (const TensorMeta& meta : request.context.inputs()) {
    const bool is_plain = meta.layout.is_plain();
    inputs.push_back(is_plain ? StrCat(meta.shape) : StrCat(meta.shape, " ", meta.layout));
  }
  return StrCat(request.context.op().type, " ", Join(inputs, ", "));
}

}  // namespace skiff
