#include "framework/builder/transformer_blocks.h"

#include <utility>

#include "framework/builder/elementwise.h"
#include "framework/builder/nn.h"
#include "framework/tensor/shape.h"

namespace skiff::layers {

TransformerBlocks::TransformerBlocks(const LayerCall& call, const Variable& x,
                                     TransformerSettings settings, Site site)
    : settings_(std::move(settings)), site_(site) {
  call.CheckedName(x);
  call.Enforce(x.dims().size() == 3 && x.dims()[2] > 0, "input \"", x.name(), "\" has the shape ",
               Shape(x.dims()), ", expected [N, L, width] with a known width");
  width_ = x.dims()[2];
  call.Enforce(settings_.layers >= 1, "layers = ", settings_.layers, ", expected at least 1");
  call.Enforce(settings_.feed_forward >= 0, "feed_forward = ", settings_.feed_forward,
               ", expected no negative number");
  call.Enforce(settings_.dropout >= 0.0f && settings_.dropout < 1.0f,
               "dropout = ", settings_.dropout, " is outside [0, 1)");
  call.Enforce(settings_.norm == "layer_norm" || settings_.norm == "rms_norm", "norm = \"",
               settings_.norm, "\", expected layer_norm or rms_norm");
}

Variable TransformerBlocks::Add(const Variable& x, const std::string& layer, const char* part,
                                const std::function<Variable(const Variable&)>& block) const {
  if (settings_.normalize_first) {
    const Variable in = Normalize(x, StrCat(layer, "_pre_", part));
    return ElementwiseAdd(x, Drop(block(in)), {}, site_);
  }
  return Normalize(ElementwiseAdd(x, Drop(block(x)), {}, site_), StrCat(layer, "_post_", part));
}

Variable TransformerBlocks::AddFeedForward(const Variable& x, const std::string& layer) const {
  return Add(x, layer, "ffn", [&](const Variable& in) { return FeedForward(in, layer + "_ffn"); });
}

Variable TransformerBlocks::Finish(const Variable& x, const std::string& name) const {
  return settings_.normalize_first ? Normalize(x, name + "_post") : x;
}

Variable TransformerBlocks::Normalize(const Variable& x, const std::string& name) const {
  const std::string norm = StrCat(name, "_", settings_.norm);
  const ParamAttr scale{.name = norm + "_scale"};
  if (settings_.norm == "rms_norm") {
    return RmsNorm(
        x, {.begin_norm_axis = 2, .epsilon = settings_.epsilon, .param_attr = scale, .name = norm},
        site_);
  }
  return LayerNorm(x,
                   {.begin_norm_axis = 2,
                    .epsilon = settings_.epsilon,
                    .param_attr = scale,
                    .bias_attr = ParamAttr{.name = norm + "_bias"},
                    .name = norm},
                   site_);
}

Variable TransformerBlocks::FeedForward(const Variable& x, const std::string& name) const {
  const int64_t hidden = settings_.feed_forward == 0 ? 4 * width_ : settings_.feed_forward;
  Variable y = Project(x, hidden, name + "_fc_0", settings_.act);
  if (settings_.gated) y = ElementwiseMul(y, Project(x, hidden, name + "_fc_gate"), {}, site_);
  return Project(y, width_, name + "_fc_1");
}

Variable TransformerBlocks::Project(const Variable& x, int64_t size, const std::string& name,
                                    const std::string& act) const {
  return Fc(x, size,
            {.num_flatten_dims = 2,
             .param_attr = settings_.param_attr,
             .bias_attr = settings_.bias_attr,
             .act = act,
             .name = name},
            site_);
}

Variable TransformerBlocks::Drop(const Variable& x) const {
  if (settings_.dropout == 0) return x;
  return Dropout(x, settings_.dropout,
                 {.is_test = settings_.is_test, .implementation = "upscale_in_train"}, site_);
}

}  // namespace skiff::layers
