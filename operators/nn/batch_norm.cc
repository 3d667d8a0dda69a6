// batch_norm: each channel with mean 0 and variance 1 over batch and pixels, scaled and shifted.
//
//   Y = Scale · (X - mean) / sqrt(variance + epsilon) + Bias
//
// In training, mean and (biased) variance are those of the batch, and the running ones are updated:
// MeanOut = momentum · Mean + (1 - momentum) · mean, and VarianceOut likewise. With
// use_global_stats, or is_test without trainable_statistics, they are Mean and Variance, which
// don't change. SavedMean and SavedVariance hold the mean and 1 / sqrt(variance + epsilon) that Y
// was computed with. In training, a batch with one value per channel passes unchanged (Fluid's
// rule: one value has no variance).
//
// Gradient, with h = 1 / sqrt(variance + epsilon), z = (X - mean) · h and m values per channel:
//   Bias@GRAD = sum Y@GRAD,  Scale@GRAD = sum Y@GRAD · z
//   X@GRAD = Scale · h · (Y@GRAD - Bias@GRAD / m - z · Scale@GRAD / m), without the last two
//   terms if mean and variance did not depend on X.
//
// Source: Ioffe & Szegedy 2015; Fluid's batch_norm (PaddlePaddle 2.6).
#include "framework/op/registry.h"
#include "operators/nn/normalization/batch_norm_definition.h"
#include "operators/nn/normalization/batch_norm_kernels.h"

namespace skiff {
namespace {

OpDef BatchNormDef() {
  OpDef def = BatchNormDefinition();
  def.type = "batch_norm";
  def.doc =
      "Y = Scale * (X - mean) / sqrt(variance + epsilon) + Bias, with mean and variance of each "
      "channel over the batch, or Mean and Variance (is_test, use_global_stats).";
  def.grad = BatchNormGradRule("batch_norm_grad");
  return def;
}

OpDef BatchNormGradDef() {
  OpDef def = BatchNormGradDefinition();
  def.type = "batch_norm_grad";
  def.doc =
      "Bias@GRAD = sum Y@GRAD; Scale@GRAD = sum Y@GRAD * z with z = (X - mean) / sqrt(variance + "
      "epsilon); X@GRAD = Scale / sqrt(variance + epsilon) * (Y@GRAD - Bias@GRAD / m - z * "
      "Scale@GRAD / m) over the m values of a channel, without the last two terms for global "
      "statistics.";
  def.no_gradient_reason = "second derivatives of batch normalization are not provided";
  return def;
}

}  // namespace

void RegisterBatchNorm(OpRegistry& registry) {
  registry.Add(BatchNormDef());
  registry.Add(BatchNormGradDef());
  AddBatchNormKernels(registry, "batch_norm");
}

}  // namespace skiff
