// From bytes to programs, one function per message. Required fields are there
// (codec_messages.h); values, indices and duplicates are checked here.
#include <algorithm>
#include <list>
#include <optional>
#include <set>
#include <unordered_set>

#include "framework/base/error.h"
#include "framework/ir/codec.h"
#include "framework/ir/codec_messages.h"

namespace skiff {
namespace {

using Warnings = std::vector<std::string>;

template <typename... Args>
[[noreturn]] void ThrowCorrupt(const Args&... args) {
  Throw(ErrorCode::kDataLoss, args...);
}

DType ReadDType(wire::VarTypeNumber type) {
  SKIFF_ENFORCE(IsDType(type.value), kUnimplemented, "data type ", type.name(),
                " is not supported");
  return static_cast<DType>(type.value);
}

void ReadTensorDesc(const wire::TensorDesc& desc, Var* var) {
  var->dtype = ReadDType(*desc.data_type);
  var->dims = desc.dims;
}

void ReadLoDDesc(const wire::LoDTensorDesc& desc, Var* var) {
  ReadTensorDesc(*desc.tensor, var);
  var->lod_level = desc.lod_level.value_or(0);
}

// Messages may be missing; the defaults of Var then hold.
void ReadVarType(const wire::VarType& type, Var* var) {
  SKIFF_ENFORCE(IsVarKind(type.type->value), kUnimplemented, "type ", type.type->name(),
                " is not supported for a variable");
  var->kind = static_cast<VarKind>(type.type->value);
  if (var->kind == VarKind::kSelectedRows) {
    if (type.selected_rows) ReadTensorDesc(*type.selected_rows, var);
  } else if (var->kind == VarKind::kLoDTensorArray) {
    if (type.tensor_array) ReadLoDDesc(*type.tensor_array, var);
  } else if (var->kind == VarKind::kReader) {
    const bool has_tensor = type.reader && !type.reader->lod_tensor.empty();
    if (has_tensor) ReadLoDDesc(type.reader->lod_tensor.front(), var);
  } else if (type.lod_tensor) {
    ReadLoDDesc(*type.lod_tensor, var);
  }
}

// Returns the value of an attribute that isn't a list. No default can be meant by a missing one.
template <typename Attr, typename T>
const T& ValueOf(const Attr& attr, const std::optional<T>& field) {
  if (!field.has_value()) {
    ThrowCorrupt("attribute \"", *attr.name, "\" of type ", attr.type->name(), " has no value");
  }
  return *field;
}

Attribute ReadVarAttr(const wire::VarAttr& attr) {
  switch (static_cast<AttrType>(attr.type->value)) {
    case AttrType::kInt:
      return ValueOf(attr, attr.i);
    case AttrType::kString:
      return std::string(ValueOf(attr, attr.s));
    case AttrType::kInts:
      return attr.ints;
    default:
      ThrowCorrupt("attribute \"", *attr.name, "\" of a variable is of type ", attr.type->name(),
                   ", expected INT, STRING or INTS");
  }
}

// Returns the attributes of the op or variable at `place`; `read` converts each message.
// PaddlePaddle writes some attributes of reshape2 and similar ops twice, and reads the last one of
// a name.
template <typename Messages, typename Read>
AttributeMap ReadAttrs(const Messages& messages, const std::string& place, Warnings* warnings,
                       const Read& read) {
  AttributeMap attrs;
  std::set<std::string_view> repeated;
  for (const auto& message : messages) {
    const bool is_new = attrs.insert_or_assign(std::string(*message.name), read(message)).second;
    if (!is_new) repeated.insert(*message.name);
  }
  if (warnings == nullptr || repeated.empty()) return attrs;
  warnings->push_back(StrCat(place, ": each of these attributes is there more than once, and its ",
                             "last value counts: ", Join(repeated, ", ")));
  return attrs;
}

// Any negative dim is unknown: PaddlePaddle writes products of dims, such as -8 for the statistics
// of instance_norm on an unknown number of images with 8 channels.
void ForgetNegativeDims(const std::string& place, Warnings* warnings, std::vector<int64_t>* dims) {
  const auto is_product = [](int64_t dim) { return dim < -1; };
  if (std::ranges::none_of(*dims, is_product)) return;
  const std::string found = Join(*dims, ", ");
  std::ranges::replace_if(*dims, is_product, -1);
  if (warnings == nullptr) return;
  warnings->push_back(StrCat(place, ": its dims are [", found, "]; those below -1 are unknown"));
}

Var ReadVar(const wire::VarDesc& desc, const std::string& place, Warnings* warnings) {
  Var var;
  var.name = *desc.name;
  ReadVarType(*desc.type, &var);
  ForgetNegativeDims(place, warnings, &var.dims);
  var.persistable = desc.persistable.value_or(false);
  var.need_check_feed = desc.need_check_feed.value_or(false);
  var.is_parameter = desc.is_parameter.value_or(false);
  var.stop_gradient = desc.stop_gradient.value_or(false);
  var.attrs = ReadAttrs(desc.attrs, place, warnings, ReadVarAttr);
  return var;
}

BlockIndex ReadBlockIndex(const wire::OpAttr& attr, int32_t index, int block_count) {
  if (index < 0 || index >= block_count) {
    ThrowCorrupt("attribute \"", *attr.name, "\" names block ", index, ", expected one in [0, ",
                 block_count, ")");
  }
  return {index};
}

std::vector<BlockIndex> ReadBlockIndices(const wire::OpAttr& attr, int block_count) {
  std::vector<BlockIndex> blocks;
  for (int32_t index : attr.blocks_idx) {
    blocks.push_back(ReadBlockIndex(attr, index, block_count));
  }
  return blocks;
}

std::vector<VarName> ReadVarNames(const wire::OpAttr& attr) {
  std::vector<VarName> vars;
  for (std::string_view name : attr.vars_name) vars.push_back({std::string(name)});
  return vars;
}

std::vector<std::string> ReadStrings(const std::vector<std::string_view>& strings) {
  return {strings.begin(), strings.end()};
}

double ReadScalar(const wire::OpAttr& attr, const wire::Scalar& scalar) {
  const auto value_of = [&](const auto& field) {
    if (!field.has_value()) {
      ThrowCorrupt("attribute \"", *attr.name, "\" has a ", scalar.type->name(),
                   " without a value");
    }
    return *field;
  };
  switch (static_cast<wire::ScalarType>(scalar.type->value)) {
    case wire::ScalarType::kBool:
      return value_of(scalar.b) ? 1 : 0;
    case wire::ScalarType::kLong: {
      constexpr int64_t kMostExact = int64_t{1} << 53;
      const int64_t whole = value_of(scalar.i);
      SKIFF_ENFORCE(whole >= -kMostExact && whole <= kMostExact, kUnimplemented, "attribute \"",
                    *attr.name, "\" has the number ", whole, ", which is kept as a double");
      return static_cast<double>(whole);
    }
    case wire::ScalarType::kFloat64:
      return value_of(scalar.r);
    case wire::ScalarType::kComplex:
      break;
  }
  Throw(ErrorCode::kUnimplemented, "attribute \"", *attr.name, "\" has a ", scalar.type->name(),
        ", which is not supported");
}

std::vector<double> ReadScalars(const wire::OpAttr& attr) {
  std::vector<double> values;
  for (const wire::Scalar& scalar : attr.scalars) values.push_back(ReadScalar(attr, scalar));
  return values;
}

Attribute ReadAttr(const wire::OpAttr& attr, int block_count) {
  if (attr.type->value == wire::kScalarsType && wire::AreScalars(*attr.name)) {
    return ReadScalars(attr);
  }
  switch (static_cast<AttrType>(attr.type->value)) {
    case AttrType::kInt:
      return ValueOf(attr, attr.i);
    case AttrType::kFloat:
      return ValueOf(attr, attr.f);
    case AttrType::kString:
      return std::string(ValueOf(attr, attr.s));
    case AttrType::kInts:
      return attr.ints;
    case AttrType::kFloats:
      return attr.floats;
    case AttrType::kStrings:
      return ReadStrings(attr.strings);
    case AttrType::kBool:
      return ValueOf(attr, attr.b);
    case AttrType::kBools:
      return attr.bools;
    case AttrType::kBlock:
      return ReadBlockIndex(attr, ValueOf(attr, attr.block_idx), block_count);
    case AttrType::kLong:
      return ValueOf(attr, attr.l);
    case AttrType::kBlocks:
      return ReadBlockIndices(attr, block_count);
    case AttrType::kLongs:
      return attr.longs;
    case AttrType::kDoubles:
      return attr.float64s;
    case AttrType::kVar:
      return VarName{std::string(ValueOf(attr, attr.var_name))};
    case AttrType::kVars:
      return ReadVarNames(attr);
    case AttrType::kDouble:
      return ValueOf(attr, attr.float64);
  }
  Throw(ErrorCode::kUnimplemented, "attribute \"", *attr.name, "\" is of type ", attr.type->name(),
        ", which is not supported");
}

Slots ReadSlots(const std::list<wire::OpVar>& vars) {
  Slots slots;
  std::unordered_set<std::string_view> names;
  for (const wire::OpVar& var : vars) {
    if (!names.insert(*var.parameter).second) {
      ThrowCorrupt("slot \"", *var.parameter, "\" is there twice");
    }
    slots.push_back({std::string(*var.parameter), ReadStrings(var.arguments)});
  }
  return slots;
}

Op ReadOp(const wire::OpDesc& desc, int block_count, const std::string& place, Warnings* warnings) {
  Op op{std::string(*desc.type)};
  op.inputs = ReadSlots(desc.inputs);
  op.outputs = ReadSlots(desc.outputs);
  op.attrs = ReadAttrs(desc.attrs, place, warnings,
                       [&](const auto& attr) { return ReadAttr(attr, block_count); });
  op.is_target = desc.is_target.value_or(false);
  return op;
}

// Runs `read` and adds the place in the program to its Error.
template <typename Read>
void ReadAt(const std::string& place, const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    throw error.WithContext(place);
  }
}

// Returns -1 if there is none. PaddlePaddle's GradientMergeOptimizer says of its block that it is
// its own forward block.
int32_t ForwardBlockOf(const wire::BlockDesc& desc) {
  const int32_t forward = desc.forward_block_idx.value_or(-1);
  return forward == *desc.idx ? -1 : forward;
}

void CheckBlockHeader(const wire::BlockDesc& desc, int position, int block_count) {
  if (*desc.idx != position) {
    ThrowCorrupt("block ", position, " says that its index is ", *desc.idx);
  }
  const int32_t parent = *desc.parent_idx;
  // So blocks can be appended in the order of the file.
  if (parent < -1 || parent >= position) {
    ThrowCorrupt("block ", position, " has the parent ", parent, ", expected one in [-1, ",
                 position, ")");
  }
  const int32_t forward = ForwardBlockOf(desc);
  if (forward < -1 || forward >= block_count) {
    ThrowCorrupt("block ", position, " has the forward block ", forward, ", expected one in [-1, ",
                 block_count, ")");
  }
}

void CreateVar(const wire::VarDesc& desc, Block* block, Warnings* warnings) {
  const std::string block_place = StrCat("block ", block->index());
  const std::string place = StrCat(block_place, ": variable \"", *desc.name, "\"");
  ReadAt(block_place, [&] {
    if (desc.name->empty()) ThrowCorrupt("a variable has an empty name");
    if (block->FindLocalVar(*desc.name) != nullptr) {
      ThrowCorrupt("variable \"", *desc.name, "\" is there twice");
    }
  });
  ReadAt(place, [&] { block->CreateVar(ReadVar(desc, place, warnings)); });
}

void ReadBlock(const wire::BlockDesc& desc, int block_count, Block* block, Warnings* warnings) {
  block->forward_block_index = ForwardBlockOf(desc);
  for (const wire::VarDesc& var : desc.vars) CreateVar(var, block, warnings);
  for (const wire::OpDesc& op : desc.ops) {
    const std::string place =
        StrCat("block ", block->index(), ", op #", block->ops().size(), " \"", *op.type, "\"");
    ReadAt(place, [&] { block->AppendOp(ReadOp(op, block_count, place, warnings)); });
  }
}

void ReadVersions(const wire::ProgramDesc& desc, Program* program) {
  if (desc.version) program->version = desc.version->version.value_or(0);
  if (!desc.op_version_map) return;
  for (const wire::OpVersionPair& pair : desc.op_version_map->pair) {
    program->op_versions.emplace_back(*pair.op_name, *pair.op_version->version);
  }
}

}  // namespace

std::unique_ptr<Program> ParseProgram(std::string_view bytes, Warnings* warnings) {
  const wire::ProgramDesc desc = wire::DecodeProgram(bytes);
  if (desc.blocks.empty()) ThrowCorrupt("the ProgramDesc has no blocks, expected one at least");
  const int block_count = static_cast<int>(desc.blocks.size());
  auto program = std::make_unique<Program>();
  int position = 0;
  for (const wire::BlockDesc& block_desc : desc.blocks) {
    CheckBlockHeader(block_desc, position, block_count);
    Block* block = position == 0 ? program->root() : program->AppendBlock(*block_desc.parent_idx);
    ReadBlock(block_desc, block_count, block, warnings);
    ++position;
  }
  ReadVersions(desc, program.get());
  return program;
}

void ParseTensorDesc(std::string_view bytes, DType* dtype, std::vector<int64_t>* dims) {
  const wire::TensorDesc desc = wire::DecodeTensor(bytes);
  *dtype = ReadDType(*desc.data_type);
  *dims = desc.dims;
}

}  // namespace skiff
