#include "framework/op/var_meta.h"

namespace skiff {

TensorMeta MetaOf(const Var& var) {
  return {.shape = Shape(var.dims),
          .dtype = var.dtype,
          .lod_level = var.lod_level,
          .layout = {},
          .persistable = var.persistable};
}

}  // namespace skiff
