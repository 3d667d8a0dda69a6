// The field numbers of Fluid's messages, as in tests/framework/ir/framework.proto. Internal to the
// codec.
#pragma once

#include <cstdint>
#include <protozero/types.hpp>
#include <string_view>

namespace skiff::wire {

using protozero::pbf_tag_type;

enum class VersionField : pbf_tag_type { kVersion = 1 };

enum class OpAttrField : pbf_tag_type {
  kName = 1,
  kType = 2,
  kI = 3,
  kF = 4,
  kS = 5,
  kInts = 6,
  kFloats = 7,
  kStrings = 8,
  kB = 10,
  kBools = 11,
  kBlockIdx = 12,
  kL = 13,
  kBlocksIdx = 14,
  kLongs = 15,
  kFloat64s = 16,
  kVarName = 17,
  kVarsName = 18,
  kFloat64 = 19,
  kScalars = 21,
};

// Scalars have a type each. Skiff's attributes have no such lists. PaddlePaddle 2.6 has lists of
// scalars under one attribute name: doubles in Skiff, scalars in files.
inline constexpr int32_t kScalarsType = 17;  // of AttrType
constexpr bool AreScalars(std::string_view attr) { return attr == "values"; }

enum class ScalarField : pbf_tag_type { kType = 1, kB = 2, kI = 3, kR = 4, kC = 5 };
enum class ScalarType : int32_t { kBool = 1, kLong = 2, kFloat64 = 3, kComplex = 4 };
enum class ComplexField : pbf_tag_type { kR = 1, kI = 2 };

enum class OpVarField : pbf_tag_type { kParameter = 1, kArguments = 2 };

enum class OpField : pbf_tag_type {
  kInputs = 1,
  kOutputs = 2,
  kType = 3,
  kAttrs = 4,
  kIsTarget = 5,
};

enum class TensorField : pbf_tag_type { kDataType = 1, kDims = 2 };

// Of LoDTensorDesc and LoDTensorArrayDesc, which have the same fields.
enum class LoDTensorField : pbf_tag_type { kTensor = 1, kLoDLevel = 2 };

enum class ReaderField : pbf_tag_type { kLoDTensor = 1 };

enum class TupleField : pbf_tag_type { kElementType = 1 };

enum class VarTypeField : pbf_tag_type {
  kType = 1,
  kSelectedRows = 2,
  kLoDTensor = 3,
  kTensorArray = 4,
  kReader = 5,
  kTuple = 7,
  kString = 8,
  kStrings = 9,
  kVocab = 10,
  kSparseCoo = 11,
  kSparseCsr = 12,
};

enum class VarAttrField : pbf_tag_type { kName = 1, kType = 2, kI = 3, kS = 4, kInts = 5 };

enum class VarField : pbf_tag_type {
  kName = 1,
  kType = 2,
  kPersistable = 3,
  kNeedCheckFeed = 4,
  kIsParameter = 5,
  kStopGradient = 6,
  kAttrs = 7,
};

enum class BlockField : pbf_tag_type {
  kIdx = 1,
  kParentIdx = 2,
  kVars = 3,
  kOps = 4,
  kForwardBlockIdx = 5,
};

enum class OpVersionField : pbf_tag_type { kVersion = 1 };

enum class OpVersionPairField : pbf_tag_type { kOpName = 1, kOpVersion = 2 };

enum class OpVersionMapField : pbf_tag_type { kPair = 1 };

enum class ProgramField : pbf_tag_type { kBlocks = 1, kVersion = 4, kOpVersionMap = 5 };

}  // namespace skiff::wire
