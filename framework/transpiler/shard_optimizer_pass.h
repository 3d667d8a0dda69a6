// Shares each optimizer update among the ranks (ZeRO-1): a rank updates its part of the parameters
// and keeps the states of only this part; then all ranks get all parameters.
//
//   before                                   after, on rank 0 of 2
//     sw, sb = c_allreduce_list(gw, gb)        pw, pb = c_reduce_scatter_list(gw, gb)
//                                                  {parts = [0, 16, 35]}
//     w, b = momentum(Param: [w, b],           w, b = momentum(Param: [w, b],
//                     Grad: [sw, sb],                          Grad: [pw, pb],
//                     Velocity: [w_v, b_v])                    Velocity: [w_v@SHARD])
//                                                  {part = [0, 16], sharded = [Velocity]}
//                                              w, b = c_all_gather_list(w, b)
//                                                  {parts = [0, 16, 35]}
//
// Take the elements of the parameters of an update one after the other. The part of rank r begins
// at element r · n / N, rounded down to a multiple of kPieceAlignment in its parameter. The bits
// are those of the whole update. Scalars per parameter, such as powers of beta, stay whole.
//
// Where nothing but shared updates reads sums of gradients, each rank gets only its part of a sum:
// an update of parameters from several buckets then becomes one update for each bucket. Otherwise,
// as with a clip by the norm of all gradients, the sums stay whole.
//
// Master weights are sharded, too, unless another op uses them, an average for example; then they
// are gathered as the parameters are. An update stays whole if its gradient is sparse, if it has
// no state to share, or if it needs norms of whole parameters (lamb, lars_momentum). The executor
// makes the shards of the states in the scope (ShardedStates). Without several ranks the pass does
// nothing. `changes`: states that are shared.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class ShardOptimizerPass final : public ProgramPass {
 public:
  std::string_view name() const override { return "shard_optimizer"; }
  std::string_view needs() const override { return "flatten_parameters"; }
  PassReport Apply(const ProgramPassContext& context, Program* program) const override;
};

}  // namespace skiff
