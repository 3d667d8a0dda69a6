#include "framework/builder/regularizer.h"

namespace skiff {

Regularizer L1Decay(float coefficient) { return {Regularizer::Kind::kL1, coefficient}; }
Regularizer L2Decay(float coefficient) { return {Regularizer::Kind::kL2, coefficient}; }

}  // namespace skiff
