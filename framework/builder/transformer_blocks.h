// The parts of transformer layers. For authors of layers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "framework/builder/layer_call.h"
#include "framework/builder/layers.h"
#include "framework/builder/param_attr.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

// The settings that encoders and decoders share; transformer_encoder.h and transformer_decoder.h
// explain them.
struct TransformerSettings {
  int64_t layers = 1;
  int64_t feed_forward = 0;
  std::string act = "gelu";
  bool gated = false;
  float dropout = 0.0f;
  bool is_test = false;
  bool normalize_first = false;
  std::string norm = "layer_norm";
  float epsilon = 1e-5f;
  ParamAttr param_attr = {};
  BiasAttr bias_attr = {};
};

class TransformerBlocks {
 public:
  // For an input x. Throws an Error (kInvalidArgument) on behalf of the call if x or a setting is
  // none that these blocks take.
  TransformerBlocks(const LayerCall& call, const Variable& x, TransformerSettings settings,
                    Site site);

  // Returns x + drop(block(x)), normalised after the addition, or x before the block. The
  // normalisation is called <layer>_post_<part> or <layer>_pre_<part>.
  Variable Add(const Variable& x, const std::string& layer, const char* part,
               const std::function<Variable(const Variable&)>& block) const;
  // Adds the feed-forward network of a layer.
  Variable AddFeedForward(const Variable& x, const std::string& layer) const;
  // Returns the result of the last layer called `name`: x, normalised if the layers normalise their
  // inputs.
  Variable Finish(const Variable& x, const std::string& name) const;

 private:
  Variable Normalize(const Variable& x, const std::string& name) const;
  Variable FeedForward(const Variable& x, const std::string& name) const;
  Variable Project(const Variable& x, int64_t size, const std::string& name,
                   const std::string& act = "") const;
  Variable Drop(const Variable& x) const;

  TransformerSettings settings_;
  int64_t width_;
  Site site_;
};

}  // namespace skiff::layers
