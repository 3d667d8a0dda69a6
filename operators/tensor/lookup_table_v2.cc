// lookup_table_v2: Out[i, :] = W[Ids[i], :], and zeros where Ids[i] == padding_idx.
//
// Source: Fluid's lookup_table_v2. Out has the dims of Ids, then the row length of W. Dense
// gradient: W@GRAD[r, :] = the sum over i with Ids[i] == r of Out@GRAD[i, :], in the order of i,
// and 0 in row padding_idx. With is_sparse, W@GRAD is selected rows: slot i is row Ids[i] with the
// values Out@GRAD[i, :], and unused for padding_idx (Fluid gives that row a gradient). An id
// outside the table is an Error, thrown after the op's loop; only padding_idx may be outside.
#include "operators/tensor/kernels/table_lookup.h"

namespace skiff {

void RegisterLookupTableV2(OpRegistry& registry) {
  AddLookupOps(registry, {.type = "lookup_table_v2",
                          .doc = "Out[i, :] = W[Ids[i], :]; zeros where Ids[i] == padding_idx.",
                          .ids_doc = "Row numbers, int64 or int32, of any shape."});
}

}  // namespace skiff
