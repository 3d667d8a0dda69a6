#include "framework/builder/transformer_encoder.h"

#include "framework/base/error.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/transformer_blocks.h"

namespace skiff::layers {

Variable TransformerEncoder(const Variable& x, const TransformerEncoderOptions& options,
                            Site site) {
  const LayerCall call("transformer_encoder", options.name, site);
  const TransformerBlocks blocks(call, x,
                                 {.layers = options.layers,
                                  .feed_forward = options.feed_forward,
                                  .act = options.act,
                                  .dropout = options.dropout,
                                  .is_test = options.is_test,
                                  .normalize_first = options.normalize_first,
                                  .epsilon = options.epsilon,
                                  .param_attr = options.param_attr,
                                  .bias_attr = options.bias_attr},
                                 site);
  Variable y = x;
  for (int64_t i = 0; i < options.layers; ++i) {
    const std::string name = StrCat(call.name(), "_layer_", i);
    y = blocks.Add(y, name, "att", [&](const Variable& in) {
      return Attention(in,
                       {.heads = options.heads,
                        .dropout = options.attention_dropout,
                        .is_test = options.is_test,
                        .mask = options.mask,
                        .key_lengths = options.key_lengths,
                        .packed = options.packed,
                        .param_attr = options.param_attr,
                        .bias_attr = options.bias_attr,
                        .name = name + "_multi_head_att"},
                       site);
    });
    y = blocks.AddFeedForward(y, name);
  }
  return blocks.Finish(y, call.name());
}

}  // namespace skiff::layers
