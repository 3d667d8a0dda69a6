#include "framework/builder/transformer_decoder.h"

#include "framework/base/error.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/transformer_blocks.h"

namespace skiff::layers {
namespace {

// Attention of x to itself, in layer i.
AttentionOptions SelfAttention(const TransformerDecoderOptions& options, int64_t i,
                               const std::string& name) {
  AttentionOptions attention{.heads = options.heads,
                             .causal = true,
                             .dropout = options.attention_dropout,
                             .is_test = options.is_test,
                             .key_lengths = options.key_lengths,
                             .rotary = options.rotary,
                             .rotary_base = options.rotary_base,
                             .rotary_interleaved = options.rotary_interleaved,
                             .positions = options.positions,
                             .packed = options.packed,
                             .param_attr = options.param_attr,
                             .bias_attr = options.bias_attr,
                             .name = name + "_multi_head_att"};
  if (!options.cache.empty()) {
    const auto first = options.cache.begin() + 2 * i;
    attention.cache.assign(first, first + 2);
  }
  return attention;
}

AttentionOptions CrossAttention(const TransformerDecoderOptions& options, int64_t width,
                                const std::string& name) {
  return {.heads = options.heads,
          .width = width,
          .dropout = options.attention_dropout,
          .is_test = options.is_test,
          .key_lengths = options.memory_lengths,
          .param_attr = options.param_attr,
          .bias_attr = options.bias_attr,
          .name = name + "_cross_att"};
}

}  // namespace

Variable TransformerDecoder(const Variable& x, const TransformerDecoderOptions& options,
                            Site site) {
  const LayerCall call("transformer_decoder", options.name, site);
  const TransformerBlocks blocks(call, x,
                                 {.layers = options.layers,
                                  .feed_forward = options.feed_forward,
                                  .act = options.act,
                                  .gated = options.gated,
                                  .dropout = options.dropout,
                                  .is_test = options.is_test,
                                  .normalize_first = options.normalize_first,
                                  .norm = options.norm,
                                  .epsilon = options.epsilon,
                                  .param_attr = options.param_attr,
                                  .bias_attr = options.bias_attr},
                                 site);
  call.Enforce(options.cache.empty() || std::ssize(options.cache) == 2 * options.layers,
               options.cache.size(), " variables of a cache for ", options.layers,
               " layers, expected keys and values of each");
  call.Enforce(options.memory.defined() || !options.memory_lengths.defined(),
               "memory_lengths without a memory, expected both");
  Variable y = x;
  for (int64_t i = 0; i < options.layers; ++i) {
    const std::string name = StrCat(call.name(), "_layer_", i);
    y = blocks.Add(y, name, "att", [&](const Variable& in) {
      return Attention(in, SelfAttention(options, i, name), site);
    });
    if (options.memory.defined()) {
      y = blocks.Add(y, name, "cross_att", [&](const Variable& in) {
        return Attention(in, options.memory, options.memory,
                         CrossAttention(options, x.dims()[2], name), site);
      });
    }
    y = blocks.AddFeedForward(y, name);
  }
  return blocks.Finish(y, call.name());
}

}  // namespace skiff::layers
