// sync_batch_norm: batch_norm over the batches of all ranks, as if they were one.
//
// Each rank tells all others how many values a channel has in its batch, their mean, and their
// squared distances from it, in one message; each computes mean and variance of all values from
// these, in float64 and in the order of ranks. So normalization and running statistics are the same
// bits on all ranks, which may have batches of different sizes. A single rank gets the bits of
// batch_norm. With global statistics, no rank asks another.
//
// Gradient. Rank r has a loss l_r; what N ranks minimize together is the mean L = sum l_r / N. Let
// y_i be an output of rank r, g_i = dl_r / dy_i its Y@GRAD, z_i the normalized x_i, and M the
// number of values of a channel on all ranks. batch_norm's formula for L, whose gradient of y_i is
// g_i / N, is
//   dL / dx_i = Scale · h · (g_i / N - (sum g / N) / M - z_i · (sum g · z / N) / M)
// with sums over all ranks. The gradients of parameters are the mean over ranks of what each rank
// computes (pass data_parallel): rank r contributes 1 / N of X@GRAD · dx / dw. For the result to be
// dL / dw, X@GRAD must be N · dL / dx_i:
//   X@GRAD = Scale · h · (g_i - (sum g) / M - z_i · (sum g · z) / M)
// without any factor. This is the gradient of the sum of all losses, not of l_r alone. The mean of
// Scale@GRAD over ranks must be dL / dScale = (sum g · z) / N, and so Scale@GRAD is the sum of the
// rank alone, as is Bias@GRAD. If each loss is the mean over equally large batches, L is the mean
// over the batch that they are together: N ranks then compute what one rank does that has it.
//
// Source: Fluid's sync_batch_norm (PaddlePaddle 2.6), which sums squares.
#include "framework/op/registry.h"
#include "operators/nn/normalization/batch_norm_definition.h"
#include "operators/nn/normalization/batch_norm_kernels.h"

namespace skiff {
namespace {

OpDef SyncBatchNormDef() {
  OpDef def = BatchNormDefinition();
  def.type = "sync_batch_norm";
  def.doc =
      "batch_norm over the batches of all ranks: Y = Scale * (X - mean) / sqrt(variance + epsilon) "
      "+ Bias, with mean and variance of each channel over all of them.";
  // No other op updates the running statistics, and none computes Y again.
  std::erase_if(def.outputs,
                [&](const SlotDef& slot) { return IsOneOf(slot.name, def.batch_moments); });
  def.batch_moments.clear();
  def.running_momentum = {};
  def.replayed_by = {};
  def.grad = BatchNormGradRule("sync_batch_norm_grad");
  def.collective = true;
  def.own_outputs = {"Y"};
  return def;
}

OpDef SyncBatchNormGradDef() {
  OpDef def = BatchNormGradDefinition();
  def.type = "sync_batch_norm_grad";
  def.doc =
      "Bias@GRAD = sum Y@GRAD; Scale@GRAD = sum Y@GRAD * z with z = (X - mean) / sqrt(variance + "
      "epsilon), sums over the rank's batch; X@GRAD = Scale / sqrt(variance + epsilon) * (Y@GRAD - "
      "S / m - z * P / m), where S and P are these sums over the m values of a channel on all "
      "ranks, "
      "without the last two terms for global statistics.";
  def.no_gradient_reason = "second derivatives of batch normalization are not provided";
  def.collective = true;
  def.own_outputs = {"X@GRAD", "Scale@GRAD", "Bias@GRAD"};
  return def;
}

}  // namespace

void RegisterSyncBatchNorm(OpRegistry& registry) {
  registry.Add(SyncBatchNormDef());
  registry.Add(SyncBatchNormGradDef());
  AddBatchNormKernels(registry, "sync_batch_norm");
}

}  // namespace skiff
