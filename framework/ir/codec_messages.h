// Fluid's messages as plain structs, and the step from bytes to them. Internal to the codec.
//
// Each message lists its fields once, in kFields, in the order of their numbers: decoding and the
// check for required fields go by it. The member of a scalar is a std::optional, of a message a
// std::unique_ptr, of a repeated scalar a std::vector, of a repeated message a std::list: so the
// structs stay small, and a list that grows doesn't hold room for more. Strings point into the
// bytes that were decoded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "framework/ir/codec_fields.h"

namespace skiff::wire {

template <typename Number, typename Member>
struct Field {
  Number number;
  std::string_view name;
  Member member;
  bool is_required = false;
};
inline constexpr bool kRequired = true;

// The names of the enumerators of VarType.Type and AttrType, from 0 on. The list includes names
// that Skiff doesn't support, for the messages of Errors.
inline constexpr auto kVarTypeNames =
    std::to_array<std::string_view>({"BOOL",           "INT16",
                                     "INT32",          "INT64",
                                     "FP16",           "FP32",
                                     "FP64",           "LOD_TENSOR",
                                     "SELECTED_ROWS",  "FEED_MINIBATCH",
                                     "FETCH_LIST",     "STEP_SCOPES",
                                     "LOD_RANK_TABLE", "LOD_TENSOR_ARRAY",
                                     "PLACE_LIST",     "READER",
                                     "CHANNEL",        "RAW",
                                     "TUPLE",          "SIZE_T",
                                     "UINT8",          "INT8",
                                     "BF16",           "COMPLEX64",
                                     "COMPLEX128",     "STRING",
                                     "STRINGS",        "VOCAB",
                                     "FEED_LIST",      "PSTRING",
                                     "SPARSE_COO",     "SPARSE_CSR"});
inline constexpr auto kAttrTypeNames = std::to_array<std::string_view>(
    {"INT", "FLOAT", "STRING", "INTS", "FLOATS", "STRINGS", "BOOLEAN", "BOOLEANS", "BLOCK", "LONG",
     "BLOCKS", "LONGS", "FLOAT64S", "VAR", "VARS", "FLOAT64", "SCALAR", "SCALARS"});

// Scalar.Type begins with 1.
inline constexpr auto kScalarTypeNames =
    std::to_array<std::string_view>({"BOOLEAN", "LONG", "FLOAT64", "COMPLEX128"});

// An enumerator with a name: decoding drops enumerators without a name, as proto2 does.
template <const auto& names, int32_t first = 0>
struct Enumerator {
  int32_t value;

  static bool IsKnown(int32_t value) {
    return value >= first && static_cast<size_t>(value - first) < names.size();
  }
  std::string_view name() const { return names[static_cast<size_t>(value - first)]; }
};
using VarTypeNumber = Enumerator<kVarTypeNames>;
using AttrTypeNumber = Enumerator<kAttrTypeNames>;
using ScalarTypeNumber = Enumerator<kScalarTypeNames, 1>;

struct Version {
  std::optional<int64_t> version;

  static constexpr std::tuple kFields{
      Field{VersionField::kVersion, "version", &Version::version},
  };
};

struct Complex {
  std::optional<double> r;
  std::optional<double> i;

  static constexpr std::tuple kFields{
      Field{ComplexField::kR, "r", &Complex::r, kRequired},
      Field{ComplexField::kI, "i", &Complex::i, kRequired},
  };
};

struct Scalar {
  std::optional<ScalarTypeNumber> type;
  std::optional<bool> b;
  std::optional<int64_t> i;
  std::optional<double> r;
  std::unique_ptr<Complex> c;

  static constexpr std::tuple kFields{
      Field{ScalarField::kType, "type", &Scalar::type, kRequired},
      Field{ScalarField::kB, "b", &Scalar::b},
      Field{ScalarField::kI, "i", &Scalar::i},
      Field{ScalarField::kR, "r", &Scalar::r},
      Field{ScalarField::kC, "c", &Scalar::c},
  };
};

struct OpAttr {
  std::optional<std::string_view> name;
  std::optional<AttrTypeNumber> type;
  std::optional<int32_t> i;
  std::optional<float> f;
  std::optional<std::string_view> s;
  std::vector<int32_t> ints;
  std::vector<float> floats;
  std::vector<std::string_view> strings;
  std::optional<bool> b;
  std::vector<bool> bools;
  std::optional<int32_t> block_idx;
  std::optional<int64_t> l;
  std::vector<int32_t> blocks_idx;
  std::vector<int64_t> longs;
  std::vector<double> float64s;
  std::optional<std::string_view> var_name;
  std::vector<std::string_view> vars_name;
  std::optional<double> float64;
  std::list<Scalar> scalars;

  static constexpr std::tuple kFields{
      Field{OpAttrField::kName, "name", &OpAttr::name, kRequired},
      Field{OpAttrField::kType, "type", &OpAttr::type, kRequired},
      Field{OpAttrField::kI, "i", &OpAttr::i},
      Field{OpAttrField::kF, "f", &OpAttr::f},
      Field{OpAttrField::kS, "s", &OpAttr::s},
      Field{OpAttrField::kInts, "ints", &OpAttr::ints},
      Field{OpAttrField::kFloats, "floats", &OpAttr::floats},
      Field{OpAttrField::kStrings, "strings", &OpAttr::strings},
      Field{OpAttrField::kB, "b", &OpAttr::b},
      Field{OpAttrField::kBools, "bools", &OpAttr::bools},
      Field{OpAttrField::kBlockIdx, "block_idx", &OpAttr::block_idx},
      Field{OpAttrField::kL, "l", &OpAttr::l},
      Field{OpAttrField::kBlocksIdx, "blocks_idx", &OpAttr::blocks_idx},
      Field{OpAttrField::kLongs, "longs", &OpAttr::longs},
      Field{OpAttrField::kFloat64s, "float64s", &OpAttr::float64s},
      Field{OpAttrField::kVarName, "var_name", &OpAttr::var_name},
      Field{OpAttrField::kVarsName, "vars_name", &OpAttr::vars_name},
      Field{OpAttrField::kFloat64, "float64", &OpAttr::float64},
      Field{OpAttrField::kScalars, "scalars", &OpAttr::scalars},
  };
};

struct OpVar {
  std::optional<std::string_view> parameter;
  std::vector<std::string_view> arguments;

  static constexpr std::tuple kFields{
      Field{OpVarField::kParameter, "parameter", &OpVar::parameter, kRequired},
      Field{OpVarField::kArguments, "arguments", &OpVar::arguments},
  };
};

struct OpDesc {
  std::list<OpVar> inputs;
  std::list<OpVar> outputs;
  std::optional<std::string_view> type;
  std::list<OpAttr> attrs;
  std::optional<bool> is_target;

  static constexpr std::tuple kFields{
      Field{OpField::kInputs, "inputs", &OpDesc::inputs},
      Field{OpField::kOutputs, "outputs", &OpDesc::outputs},
      Field{OpField::kType, "type", &OpDesc::type, kRequired},
      Field{OpField::kAttrs, "attrs", &OpDesc::attrs},
      Field{OpField::kIsTarget, "is_target", &OpDesc::is_target},
  };
};

struct TensorDesc {
  std::optional<VarTypeNumber> data_type;
  std::vector<int64_t> dims;

  static constexpr std::tuple kFields{
      Field{TensorField::kDataType, "data_type", &TensorDesc::data_type, kRequired},
      Field{TensorField::kDims, "dims", &TensorDesc::dims},
  };
};

// Also LoDTensorArrayDesc.
struct LoDTensorDesc {
  std::unique_ptr<TensorDesc> tensor;
  std::optional<int32_t> lod_level;

  static constexpr std::tuple kFields{
      Field{LoDTensorField::kTensor, "tensor", &LoDTensorDesc::tensor, kRequired},
      Field{LoDTensorField::kLoDLevel, "lod_level", &LoDTensorDesc::lod_level},
  };
};

struct ReaderDesc {
  std::list<LoDTensorDesc> lod_tensor;

  static constexpr std::tuple kFields{
      Field{ReaderField::kLoDTensor, "lod_tensor", &ReaderDesc::lod_tensor},
  };
};

struct Tuple {
  std::vector<int32_t> element_type;

  static constexpr std::tuple kFields{
      Field{TupleField::kElementType, "element_type", &Tuple::element_type},
  };
};

// The fields from `tuple` on are here only so that the bytes are checked: Skiff's variables don't
// have these fields.
struct VarType {
  std::optional<VarTypeNumber> type;
  std::unique_ptr<TensorDesc> selected_rows;
  std::unique_ptr<LoDTensorDesc> lod_tensor;
  std::unique_ptr<LoDTensorDesc> tensor_array;
  std::unique_ptr<ReaderDesc> reader;
  std::unique_ptr<Tuple> tuple;
  std::unique_ptr<TensorDesc> string;
  std::unique_ptr<TensorDesc> strings;
  std::unique_ptr<TensorDesc> vocab;
  std::unique_ptr<TensorDesc> sparse_coo;
  std::unique_ptr<TensorDesc> sparse_csr;

  static constexpr std::tuple kFields{
      Field{VarTypeField::kType, "type", &VarType::type, kRequired},
      Field{VarTypeField::kSelectedRows, "selected_rows", &VarType::selected_rows},
      Field{VarTypeField::kLoDTensor, "lod_tensor", &VarType::lod_tensor},
      Field{VarTypeField::kTensorArray, "tensor_array", &VarType::tensor_array},
      Field{VarTypeField::kReader, "reader", &VarType::reader},
      Field{VarTypeField::kTuple, "tuple", &VarType::tuple},
      Field{VarTypeField::kString, "string", &VarType::string},
      Field{VarTypeField::kStrings, "strings", &VarType::strings},
      Field{VarTypeField::kVocab, "vocab", &VarType::vocab},
      Field{VarTypeField::kSparseCoo, "sparse_coo", &VarType::sparse_coo},
      Field{VarTypeField::kSparseCsr, "sparse_csr", &VarType::sparse_csr},
  };
};

struct VarAttr {
  std::optional<std::string_view> name;
  std::optional<AttrTypeNumber> type;
  std::optional<int32_t> i;
  std::optional<std::string_view> s;
  std::vector<int32_t> ints;

  static constexpr std::tuple kFields{
      Field{VarAttrField::kName, "name", &VarAttr::name, kRequired},
      Field{VarAttrField::kType, "type", &VarAttr::type, kRequired},
      Field{VarAttrField::kI, "i", &VarAttr::i},
      Field{VarAttrField::kS, "s", &VarAttr::s},
      Field{VarAttrField::kInts, "ints", &VarAttr::ints},
  };
};

struct VarDesc {
  std::optional<std::string_view> name;
  std::unique_ptr<VarType> type;
  std::optional<bool> persistable;
  std::optional<bool> need_check_feed;
  std::optional<bool> is_parameter;
  std::optional<bool> stop_gradient;
  std::list<VarAttr> attrs;

  static constexpr std::tuple kFields{
      Field{VarField::kName, "name", &VarDesc::name, kRequired},
      Field{VarField::kType, "type", &VarDesc::type, kRequired},
      Field{VarField::kPersistable, "persistable", &VarDesc::persistable},
      Field{VarField::kNeedCheckFeed, "need_check_feed", &VarDesc::need_check_feed},
      Field{VarField::kIsParameter, "is_parameter", &VarDesc::is_parameter},
      Field{VarField::kStopGradient, "stop_gradient", &VarDesc::stop_gradient},
      Field{VarField::kAttrs, "attrs", &VarDesc::attrs},
  };
};

struct BlockDesc {
  std::optional<int32_t> idx;
  std::optional<int32_t> parent_idx;
  std::list<VarDesc> vars;
  std::list<OpDesc> ops;
  std::optional<int32_t> forward_block_idx;

  static constexpr std::tuple kFields{
      Field{BlockField::kIdx, "idx", &BlockDesc::idx, kRequired},
      Field{BlockField::kParentIdx, "parent_idx", &BlockDesc::parent_idx, kRequired},
      Field{BlockField::kVars, "vars", &BlockDesc::vars},
      Field{BlockField::kOps, "ops", &BlockDesc::ops},
      Field{BlockField::kForwardBlockIdx, "forward_block_idx", &BlockDesc::forward_block_idx},
  };
};

struct OpVersion {
  std::optional<int32_t> version;

  static constexpr std::tuple kFields{
      Field{OpVersionField::kVersion, "version", &OpVersion::version, kRequired},
  };
};

struct OpVersionPair {
  std::optional<std::string_view> op_name;
  std::unique_ptr<OpVersion> op_version;

  static constexpr std::tuple kFields{
      Field{OpVersionPairField::kOpName, "op_name", &OpVersionPair::op_name, kRequired},
      Field{OpVersionPairField::kOpVersion, "op_version", &OpVersionPair::op_version, kRequired},
  };
};

struct OpVersionMap {
  std::list<OpVersionPair> pair;

  static constexpr std::tuple kFields{
      Field{OpVersionMapField::kPair, "pair", &OpVersionMap::pair},
  };
};

struct ProgramDesc {
  std::list<BlockDesc> blocks;
  std::unique_ptr<Version> version;
  std::unique_ptr<OpVersionMap> op_version_map;

  static constexpr std::tuple kFields{
      Field{ProgramField::kBlocks, "blocks", &ProgramDesc::blocks},
      Field{ProgramField::kVersion, "version", &ProgramDesc::version},
      Field{ProgramField::kOpVersionMap, "op_version_map", &ProgramDesc::op_version_map},
  };
};

// Return the message in `bytes`, which must outlive it. All required fields are there. They throw
// Error (kDataLoss) for bytes that libprotobuf wouldn't read either.
ProgramDesc DecodeProgram(std::string_view bytes);
TensorDesc DecodeTensor(std::string_view bytes);

}  // namespace skiff::wire
