#include "framework/builder/transformer_encoder.h"

#include "framework/base/error.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/tensor/shape.h"

namespace skiff::layers {
namespace {

class Encoder {
 public:
  Encoder(const TransformerEncoderOptions& options, int64_t width, Site site)
      : options_(options), width_(width), site_(site) {}

  Variable Normalize(const Variable& x, const std::string& name) const {
    const std::string norm = name + "_layer_norm";
    return LayerNorm(x,
                     {.begin_norm_axis = 2,
                      .epsilon = options_.epsilon,
                      .param_attr = ParamAttr{.name = norm + "_scale"},
                      .bias_attr = ParamAttr{.name = norm + "_bias"},
                      .name = norm},
                     site_);
  }

  Variable Layer(const Variable& x, const std::string& name) const {
    const auto attend = [&](const Variable& in) { return Attend(in, name + "_multi_head_att"); };
    const auto feed = [&](const Variable& in) { return FeedForward(in, name + "_ffn"); };
    if (options_.normalize_first) {
      const Variable y = ElementwiseAdd(x, attend(Normalize(x, name + "_pre_att")), {}, site_);
      return ElementwiseAdd(y, feed(Normalize(y, name + "_pre_ffn")), {}, site_);
    }
    const Variable y = Normalize(ElementwiseAdd(x, attend(x), {}, site_), name + "_post_att");
    return Normalize(ElementwiseAdd(y, feed(y), {}, site_), name + "_post_ffn");
  }

 private:
  Variable Attend(const Variable& x, const std::string& name) const {
    return Drop(Attention(x,
                          {.heads = options_.heads,
                           .dropout = options_.attention_dropout,
                           .is_test = options_.is_test,
                           .mask = options_.mask,
                           .key_lengths = options_.key_lengths,
                           .packed = options_.packed,
                           .param_attr = options_.param_attr,
                           .bias_attr = options_.bias_attr,
                           .name = name},
                          site_));
  }

  Variable FeedForward(const Variable& x, const std::string& name) const {
    const int64_t hidden = options_.feed_forward == 0 ? 4 * width_ : options_.feed_forward;
    return Drop(Project(Project(x, hidden, name + "_fc_0", options_.act), width_, name + "_fc_1"));
  }

  Variable Project(const Variable& x, int64_t size, const std::string& name,
                   const std::string& act = "") const {
    return Fc(x, size,
              {.num_flatten_dims = 2,
               .param_attr = options_.param_attr,
               .bias_attr = options_.bias_attr,
               .act = act,
               .name = name},
              site_);
  }

  Variable Drop(const Variable& x) const {
    if (options_.dropout == 0) return x;
    return Dropout(x, options_.dropout,
                   {.is_test = options_.is_test, .implementation = "upscale_in_train"}, site_);
  }

  const TransformerEncoderOptions& options_;
  int64_t width_;
  Site site_;
};

}  // namespace

Variable TransformerEncoder(const Variable& x, const TransformerEncoderOptions& options,
                            Site site) {
  const LayerCall call("transformer_encoder", options.name, site);
  call.Use(x);
  call.Enforce(x.dims().size() == 3 && x.dims()[2] > 0, "input \"", x.name(), "\" has the shape ",
               Shape(x.dims()), ", expected [N, L, width] with a known width");
  call.Enforce(options.layers >= 1, "layers = ", options.layers, ", expected at least 1");
  call.Enforce(options.feed_forward >= 0, "feed_forward = ", options.feed_forward,
               ", expected no negative number");
  call.Enforce(options.dropout >= 0.0f && options.dropout < 1.0f, "dropout = ", options.dropout,
               " is outside [0, 1)");
  const Encoder encoder(options, x.dims()[2], site);
  Variable y = x;
  for (int64_t i = 0; i < options.layers; ++i) {
    y = encoder.Layer(y, StrCat(call.name(), "_layer_", i));
  }
  return options.normalize_first ? encoder.Normalize(y, call.name() + "_post") : y;
}

}  // namespace skiff::layers
