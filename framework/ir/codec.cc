// One function per message, in both directions. Reading takes nothing for granted: required fields,
// enumerators, indices and duplicates are checked here. Writing omits fields that old versions of
// Fluid don't know if they hold the default, so that a program of such a version is written back as
// it was.
#include "framework/ir/codec.h"

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_set>

#include "framework/base/error.h"
#include "framework/ir/framework.pb.h"

namespace skiff {
namespace {

// ---- to bytes

template <typename Message>
std::string Serialize(const Message& message, std::string_view what) {
  std::string bytes;
  SKIFF_ENFORCE(message.SerializeToString(&bytes), kOutOfRange, what,
                " can't be serialised: more than 2 GiB");
  return bytes;
}

proto::VarType::Type ToProto(DType dtype) {
  return static_cast<proto::VarType::Type>(static_cast<int32_t>(dtype));
}

void WriteTensorDesc(DType dtype, const std::vector<int64_t>& dims,
                     proto::VarType::TensorDesc* desc) {
  DTypeName(dtype);  // throws for a value that isn't a dtype
  desc->set_data_type(ToProto(dtype));
  desc->mutable_dims()->Add(dims.begin(), dims.end());
}

template <typename LoDDesc>
void WriteLoDDesc(const Var& var, LoDDesc* desc) {
  WriteTensorDesc(var.dtype, var.dims, desc->mutable_tensor());
  desc->set_lod_level(var.lod_level);
}

// Each kind has its own message for dtype and dims.
void WriteVarType(const Var& var, proto::VarType* type) {
  VarKindName(var.kind);  // throws for a value that isn't a kind
  type->set_type(static_cast<proto::VarType::Type>(static_cast<int32_t>(var.kind)));
  switch (var.kind) {
    case VarKind::kLoDTensor:
      return WriteLoDDesc(var, type->mutable_lod_tensor());
    case VarKind::kSelectedRows:
      return WriteTensorDesc(var.dtype, var.dims, type->mutable_selected_rows());
    case VarKind::kLoDTensorArray:
      return WriteLoDDesc(var, type->mutable_tensor_array());
    case VarKind::kReader:
      return WriteLoDDesc(var, type->mutable_reader()->add_lod_tensor());
    default:
      break;
  }
  // In Fluid, variables of other kinds have no tensor description.
  const bool is_default = var.dtype == Var().dtype && var.dims.empty() && var.lod_level == 0;
  if (!is_default) WriteLoDDesc(var, type->mutable_lod_tensor());
}

void WriteVarAttr(const Var& var, const std::string& name, const Attribute& attribute,
                  proto::VarDesc::Attr* out) {
  out->set_name(name);
  out->set_type(static_cast<proto::AttrType>(attribute.index()));
  switch (TypeOf(attribute)) {
    case AttrType::kInt:
      out->set_i(std::get<int32_t>(attribute));
      return;
    case AttrType::kString:
      out->set_s(std::get<std::string>(attribute));
      return;
    case AttrType::kInts: {
      const auto& values = std::get<std::vector<int32_t>>(attribute);
      out->mutable_ints()->Add(values.begin(), values.end());
      return;
    }
    default:
      Throw(ErrorCode::kInvalidArgument, "variable \"", var.name, "\": attribute \"", name,
            "\" is of type ", AttrTypeName(TypeOf(attribute)),
            ", but the file format has only int, string and ints there");
  }
}

void WriteVar(const Var& var, proto::VarDesc* out) {
  out->set_name(var.name);
  WriteVarType(var, out->mutable_type());
  out->set_persistable(var.persistable);
  // Fields that later versions of Fluid added are omitted if they hold the default, as those
  // versions do.
  if (var.need_check_feed) out->set_need_check_feed(true);
  if (var.is_parameter) out->set_is_parameter(true);
  if (var.stop_gradient) out->set_stop_gradient(true);
  for (const auto& [name, attribute] : var.attrs) {
    WriteVarAttr(var, name, attribute, out->add_attrs());
  }
}

// Puts an attribute's value into the field of its type.
class AttrValueWriter {
 public:
  explicit AttrValueWriter(proto::OpDesc::Attr* out) : out_(out) {}

  void operator()(int32_t value) const { out_->set_i(value); }
  void operator()(float value) const { out_->set_f(value); }
  void operator()(const std::string& value) const { out_->set_s(value); }
  void operator()(const std::vector<int32_t>& values) const { Fill(values, out_->mutable_ints()); }
  void operator()(const std::vector<float>& values) const { Fill(values, out_->mutable_floats()); }
  void operator()(const std::vector<std::string>& values) const {
    Fill(values, out_->mutable_strings());
  }
  void operator()(bool value) const { out_->set_b(value); }
  void operator()(const std::vector<bool>& values) const { Fill(values, out_->mutable_bools()); }
  void operator()(BlockIndex value) const { out_->set_block_idx(value.value); }
  void operator()(int64_t value) const { out_->set_l(value); }
  void operator()(const std::vector<BlockIndex>& values) const {
    for (BlockIndex block : values) out_->add_blocks_idx(block.value);
  }
  void operator()(const std::vector<int64_t>& values) const { Fill(values, out_->mutable_longs()); }
  void operator()(const std::vector<double>& values) const {
    Fill(values, out_->mutable_float64s());
  }
  void operator()(const VarName& value) const { out_->set_var_name(value.value); }
  void operator()(const std::vector<VarName>& values) const {
    for (const VarName& var : values) out_->add_vars_name(var.value);
  }
  void operator()(double value) const { out_->set_float64(value); }

 private:
  template <typename Values, typename Field>
  static void Fill(const Values& values, Field* field) {
    field->Add(values.begin(), values.end());
  }

  proto::OpDesc::Attr* out_;
};

void WriteSlots(const Slots& slots, google::protobuf::RepeatedPtrField<proto::OpDesc::Var>* out) {
  for (const SlotArguments& entry : slots) {
    proto::OpDesc::Var* slot = out->Add();
    slot->set_parameter(entry.slot);
    slot->mutable_arguments()->Add(entry.arguments.begin(), entry.arguments.end());
  }
}

void WriteOp(const Op& op, proto::OpDesc* out) {
  WriteSlots(op.inputs, out->mutable_inputs());
  WriteSlots(op.outputs, out->mutable_outputs());
  out->set_type(op.type);
  for (const auto& [name, attribute] : op.attrs) {
    proto::OpDesc::Attr* attr = out->add_attrs();
    attr->set_name(name);
    attr->set_type(static_cast<proto::AttrType>(attribute.index()));
    std::visit(AttrValueWriter(attr), attribute);
  }
  if (op.is_target) out->set_is_target(true);
}

void WriteBlock(const Block& block, proto::BlockDesc* out) {
  out->set_idx(block.index());
  out->set_parent_idx(block.parent_index());
  for (const auto& var : block.vars()) WriteVar(*var, out->add_vars());
  for (const auto& op : block.ops()) WriteOp(*op, out->add_ops());
  out->set_forward_block_idx(block.forward_block_index);
}

// ---- from bytes

using Warnings = std::vector<std::string>;

template <typename... Args>
[[noreturn]] void ThrowCorrupt(const Args&... args) {
  Throw(ErrorCode::kDataLoss, args...);
}

template <typename Message>
Message ParseMessage(std::string_view bytes, std::string_view what) {
  Message message;
  // protobuf takes lengths as int.
  const bool fits = bytes.size() <= static_cast<size_t>(std::numeric_limits<int>::max());
  if (!fits || !message.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    ThrowCorrupt("the ", bytes.size(), " bytes are no ", what);
  }
  // Parses partially first: a full parse would write protobuf's complaints to stderr.
  if (!message.IsInitialized()) {
    ThrowCorrupt("the ", what, " lacks required fields, or has unknown enumerators in them: ",
                 message.InitializationErrorString());
  }
  return message;
}

DType ReadDType(proto::VarType::Type type) {
  SKIFF_ENFORCE(IsDType(type), kUnimplemented, "data type ", proto::VarType::Type_Name(type),
                " is not supported");
  return static_cast<DType>(static_cast<int32_t>(type));
}

void ReadTensorDesc(const proto::VarType::TensorDesc& desc, Var* var) {
  var->dtype = ReadDType(desc.data_type());
  var->dims.assign(desc.dims().begin(), desc.dims().end());
}

template <typename LoDDesc>
void ReadLoDDesc(const LoDDesc& desc, Var* var) {
  ReadTensorDesc(desc.tensor(), var);
  var->lod_level = desc.lod_level();
}

// Messages may be missing; the defaults of Var then hold.
void ReadVarType(const proto::VarType& type, Var* var) {
  SKIFF_ENFORCE(IsVarKind(type.type()), kUnimplemented, "type ",
                proto::VarType::Type_Name(type.type()), " is not supported for a variable");
  var->kind = static_cast<VarKind>(static_cast<int32_t>(type.type()));
  if (var->kind == VarKind::kSelectedRows) {
    if (type.has_selected_rows()) ReadTensorDesc(type.selected_rows(), var);
  } else if (var->kind == VarKind::kLoDTensorArray) {
    if (type.has_tensor_array()) ReadLoDDesc(type.tensor_array(), var);
  } else if (var->kind == VarKind::kReader) {
    if (type.reader().lod_tensor_size() > 0) ReadLoDDesc(type.reader().lod_tensor(0), var);
  } else if (type.has_lod_tensor()) {
    ReadLoDDesc(type.lod_tensor(), var);
  }
}

[[noreturn]] void ThrowNoValue(const std::string& name, proto::AttrType type) {
  ThrowCorrupt("attribute \"", name, "\" of type ", proto::AttrType_Name(type), " has no value");
}

Attribute ReadVarAttr(const proto::VarDesc::Attr& attr) {
  switch (attr.type()) {
    case proto::INT:
      if (!attr.has_i()) ThrowNoValue(attr.name(), attr.type());
      return attr.i();
    case proto::STRING:
      if (!attr.has_s()) ThrowNoValue(attr.name(), attr.type());
      return attr.s();
    case proto::INTS:
      return std::vector<int32_t>(attr.ints().begin(), attr.ints().end());
    default:
      ThrowCorrupt("attribute \"", attr.name(), "\" of a variable is of type ",
                   proto::AttrType_Name(attr.type()), ", expected INT, STRING or INTS");
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
    const bool is_new = attrs.insert_or_assign(message.name(), read(message)).second;
    if (!is_new) repeated.insert(message.name());
  }
  if (warnings == nullptr || repeated.empty()) return attrs;
  warnings->push_back(StrCat(place, ": each of these attributes is there more than once, and its ",
                             "last value counts: ", Join(repeated, ", ")));
  return attrs;
}

Var ReadVar(const proto::VarDesc& desc, const std::string& place, Warnings* warnings) {
  Var var;
  var.name = desc.name();
  ReadVarType(desc.type(), &var);
  var.persistable = desc.persistable();
  var.need_check_feed = desc.need_check_feed();
  var.is_parameter = desc.is_parameter();
  var.stop_gradient = desc.stop_gradient();
  var.attrs = ReadAttrs(desc.attrs(), place, warnings, ReadVarAttr);
  return var;
}

BlockIndex ReadBlockIndex(const proto::OpDesc::Attr& attr, int32_t index, int block_count) {
  if (index < 0 || index >= block_count) {
    ThrowCorrupt("attribute \"", attr.name(), "\" names block ", index, ", expected one in [0, ",
                 block_count, ")");
  }
  return {index};
}

std::vector<BlockIndex> ReadBlockIndices(const proto::OpDesc::Attr& attr, int block_count) {
  std::vector<BlockIndex> blocks;
  for (int32_t index : attr.blocks_idx()) {
    blocks.push_back(ReadBlockIndex(attr, index, block_count));
  }
  return blocks;
}

std::vector<VarName> ReadVarNames(const proto::OpDesc::Attr& attr) {
  std::vector<VarName> vars;
  for (const std::string& name : attr.vars_name()) vars.push_back({name});
  return vars;
}

bool HasScalar(const proto::OpDesc::Attr& attr) {
  switch (attr.type()) {
    case proto::INT:
      return attr.has_i();
    case proto::FLOAT:
      return attr.has_f();
    case proto::STRING:
      return attr.has_s();
    case proto::BOOLEAN:
      return attr.has_b();
    case proto::BLOCK:
      return attr.has_block_idx();
    case proto::LONG:
      return attr.has_l();
    case proto::VAR:
      return attr.has_var_name();
    case proto::FLOAT64:
      return attr.has_float64();
    default:
      return true;  // a list: no element is a value too
  }
}

// protobuf would give 0 for a missing value, which a file can't have meant.
void CheckHasValue(const proto::OpDesc::Attr& attr) {
  if (!HasScalar(attr)) ThrowNoValue(attr.name(), attr.type());
}

template <typename T, typename Field>
std::vector<T> ToVector(const Field& field) {
  return std::vector<T>(field.begin(), field.end());
}

Attribute ReadAttr(const proto::OpDesc::Attr& attr, int block_count) {
  CheckHasValue(attr);
  switch (attr.type()) {
    case proto::INT:
      return attr.i();
    case proto::FLOAT:
      return attr.f();
    case proto::STRING:
      return attr.s();
    case proto::INTS:
      return ToVector<int32_t>(attr.ints());
    case proto::FLOATS:
      return ToVector<float>(attr.floats());
    case proto::STRINGS:
      return ToVector<std::string>(attr.strings());
    case proto::BOOLEAN:
      return attr.b();
    case proto::BOOLEANS:
      return ToVector<bool>(attr.bools());
    case proto::BLOCK:
      return ReadBlockIndex(attr, attr.block_idx(), block_count);
    case proto::LONG:
      return int64_t{attr.l()};
    case proto::BLOCKS:
      return ReadBlockIndices(attr, block_count);
    case proto::LONGS:
      return ToVector<int64_t>(attr.longs());
    case proto::FLOAT64S:
      return ToVector<double>(attr.float64s());
    case proto::VAR:
      return VarName{attr.var_name()};
    case proto::VARS:
      return ReadVarNames(attr);
    case proto::FLOAT64:
      return attr.float64();
    case proto::SCALAR:
    case proto::SCALARS:
      Throw(ErrorCode::kUnimplemented, "attribute \"", attr.name(), "\" is of type ",
            proto::AttrType_Name(attr.type()), ", which is not supported");
  }
  ThrowCorrupt("attribute \"", attr.name(), "\" is of the unknown type ",
               static_cast<int32_t>(attr.type()));
}

Slots ReadSlots(const google::protobuf::RepeatedPtrField<proto::OpDesc::Var>& vars) {
  Slots slots;
  std::unordered_set<std::string_view> names;
  for (const proto::OpDesc::Var& var : vars) {
    if (!names.insert(var.parameter()).second) {
      ThrowCorrupt("slot \"", var.parameter(), "\" is there twice");
    }
    slots.push_back({var.parameter(), ToVector<std::string>(var.arguments())});
  }
  return slots;
}

Op ReadOp(const proto::OpDesc& desc, int block_count, const std::string& place,
          Warnings* warnings) {
  Op op(desc.type());
  op.inputs = ReadSlots(desc.inputs());
  op.outputs = ReadSlots(desc.outputs());
  op.attrs = ReadAttrs(desc.attrs(), place, warnings,
                       [&](const auto& attr) { return ReadAttr(attr, block_count); });
  op.is_target = desc.is_target();
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

void CheckBlockHeader(const proto::BlockDesc& desc, int position, int block_count) {
  if (desc.idx() != position) {
    ThrowCorrupt("block ", position, " says that its index is ", desc.idx());
  }
  const int32_t parent = desc.parent_idx();
  // So blocks can be appended in the order of the file.
  if (parent < -1 || parent >= position) {
    ThrowCorrupt("block ", position, " has the parent ", parent, ", expected one in [-1, ",
                 position, ")");
  }
  const int32_t forward = desc.forward_block_idx();
  if (forward < -1 || forward >= block_count) {
    ThrowCorrupt("block ", position, " has the forward block ", forward, ", expected one in [-1, ",
                 block_count, ")");
  }
}

void CreateVar(const proto::VarDesc& desc, Block* block, Warnings* warnings) {
  const std::string block_place = StrCat("block ", block->index());
  const std::string place = StrCat(block_place, ": variable \"", desc.name(), "\"");
  ReadAt(block_place, [&] {
    if (desc.name().empty()) ThrowCorrupt("a variable has an empty name");
    if (block->FindLocalVar(desc.name()) != nullptr) {
      ThrowCorrupt("variable \"", desc.name(), "\" is there twice");
    }
  });
  ReadAt(place, [&] { block->CreateVar(ReadVar(desc, place, warnings)); });
}

void ReadBlock(const proto::BlockDesc& desc, int block_count, Block* block, Warnings* warnings) {
  block->forward_block_index = desc.forward_block_idx();
  for (const proto::VarDesc& var : desc.vars()) CreateVar(var, block, warnings);
  for (int i = 0; i < desc.ops_size(); ++i) {
    const std::string place =
        StrCat("block ", block->index(), ", op #", i, " \"", desc.ops(i).type(), "\"");
    ReadAt(place, [&] { block->AppendOp(ReadOp(desc.ops(i), block_count, place, warnings)); });
  }
}

void ReadVersions(const proto::ProgramDesc& desc, Program* program) {
  program->version = desc.version().version();
  for (const auto& pair : desc.op_version_map().pair()) {
    program->op_versions.emplace_back(pair.op_name(), pair.op_version().version());
  }
}

}  // namespace

std::string SerializeProgram(const Program& program) {
  proto::ProgramDesc desc;
  for (size_t i = 0; i < program.block_count(); ++i) {
    WriteBlock(*program.block(static_cast<int32_t>(i)), desc.add_blocks());
  }
  desc.mutable_version()->set_version(program.version);
  for (const auto& [op, version] : program.op_versions) {
    auto* pair = desc.mutable_op_version_map()->add_pair();
    pair->set_op_name(op);
    pair->mutable_op_version()->set_version(version);
  }
  return Serialize(desc, "the program");
}

std::unique_ptr<Program> ParseProgram(std::string_view bytes, Warnings* warnings) {
  const auto desc = ParseMessage<proto::ProgramDesc>(bytes, "ProgramDesc");
  if (desc.blocks_size() == 0) ThrowCorrupt("the ProgramDesc has no blocks, expected one at least");
  auto program = std::make_unique<Program>();
  for (int i = 0; i < desc.blocks_size(); ++i) {
    CheckBlockHeader(desc.blocks(i), i, desc.blocks_size());
    Block* block = i == 0 ? program->root() : program->AppendBlock(desc.blocks(i).parent_idx());
    ReadBlock(desc.blocks(i), desc.blocks_size(), block, warnings);
  }
  ReadVersions(desc, program.get());
  return program;
}

std::string SerializeTensorDesc(DType dtype, const std::vector<int64_t>& dims) {
  proto::VarType::TensorDesc desc;
  WriteTensorDesc(dtype, dims, &desc);
  return Serialize(desc, "the TensorDesc");
}

void ParseTensorDesc(std::string_view bytes, DType* dtype, std::vector<int64_t>* dims) {
  const auto desc = ParseMessage<proto::VarType::TensorDesc>(bytes, "TensorDesc");
  *dtype = ReadDType(desc.data_type());
  dims->assign(desc.dims().begin(), desc.dims().end());
}

}  // namespace skiff
