// From programs to bytes, one function per message, which writes the fields in the order of their
// numbers, as libprotobuf does. Fields that old versions of Fluid don't know are omitted if they
// hold the default, so that a program of such a version is written back as it was.
#include <limits>
#include <protozero/pbf_builder.hpp>

#include "framework/base/error.h"
#include "framework/ir/codec.h"
#include "framework/ir/codec_fields.h"

namespace skiff {
namespace {

using protozero::pbf_builder;
using wire::BlockField;
using wire::LoDTensorField;
using wire::OpAttrField;
using wire::OpField;
using wire::OpVarField;
using wire::OpVersionField;
using wire::OpVersionMapField;
using wire::OpVersionPairField;
using wire::ProgramField;
using wire::ReaderField;
using wire::TensorField;
using wire::VarAttrField;
using wire::VarField;
using wire::VarTypeField;
using wire::VersionField;

// A message is complete when its builder is destroyed, so functions take the builder by value.

void WriteTensorDesc(DType dtype, const std::vector<int64_t>& dims, pbf_builder<TensorField> desc) {
  DTypeName(dtype);  // throws for a value that isn't a dtype
  desc.add_enum(TensorField::kDataType, static_cast<int32_t>(dtype));
  for (int64_t dim : dims) desc.add_int64(TensorField::kDims, dim);
}

void WriteLoDDesc(const Var& var, pbf_builder<LoDTensorField> desc) {
  WriteTensorDesc(var.dtype, var.dims, {desc, LoDTensorField::kTensor});
  desc.add_int32(LoDTensorField::kLoDLevel, var.lod_level);
}

void WriteReaderDesc(const Var& var, pbf_builder<ReaderField> desc) {
  WriteLoDDesc(var, {desc, ReaderField::kLoDTensor});
}

// Each kind has its own message for dtype and dims.
void WriteVarType(const Var& var, pbf_builder<VarTypeField> type) {
  VarKindName(var.kind);  // throws for a value that isn't a kind
  type.add_enum(VarTypeField::kType, static_cast<int32_t>(var.kind));
  switch (var.kind) {
    case VarKind::kLoDTensor:
      return WriteLoDDesc(var, {type, VarTypeField::kLoDTensor});
    case VarKind::kSelectedRows:
      return WriteTensorDesc(var.dtype, var.dims, {type, VarTypeField::kSelectedRows});
    case VarKind::kLoDTensorArray:
      return WriteLoDDesc(var, {type, VarTypeField::kTensorArray});
    case VarKind::kReader:
      return WriteReaderDesc(var, {type, VarTypeField::kReader});
    default:
      break;
  }
  // In Fluid, variables of other kinds have no tensor description.
  const bool is_default = var.dtype == Var().dtype && var.dims.empty() && var.lod_level == 0;
  if (!is_default) WriteLoDDesc(var, {type, VarTypeField::kLoDTensor});
}

void WriteVarAttr(const Var& var, const std::string& name, const Attribute& attribute,
                  pbf_builder<VarAttrField> out) {
  out.add_string(VarAttrField::kName, name);
  out.add_enum(VarAttrField::kType, static_cast<int32_t>(TypeOf(attribute)));
  switch (TypeOf(attribute)) {
    case AttrType::kInt:
      out.add_int32(VarAttrField::kI, std::get<int32_t>(attribute));
      return;
    case AttrType::kString:
      out.add_string(VarAttrField::kS, std::get<std::string>(attribute));
      return;
    case AttrType::kInts:
      for (int32_t value : std::get<std::vector<int32_t>>(attribute)) {
        out.add_int32(VarAttrField::kInts, value);
      }
      return;
    default:
      Throw(ErrorCode::kInvalidArgument, "variable \"", var.name, "\": attribute \"", name,
            "\" is of type ", AttrTypeName(TypeOf(attribute)),
            ", but the file format has only int, string and ints there");
  }
}

void WriteVar(const Var& var, pbf_builder<VarField> out) {
  out.add_string(VarField::kName, var.name);
  WriteVarType(var, {out, VarField::kType});
  out.add_bool(VarField::kPersistable, var.persistable);
  // Fields that later versions of Fluid added are omitted if they hold the default, as those
  // versions do.
  if (var.need_check_feed) out.add_bool(VarField::kNeedCheckFeed, true);
  if (var.is_parameter) out.add_bool(VarField::kIsParameter, true);
  if (var.stop_gradient) out.add_bool(VarField::kStopGradient, true);
  for (const auto& [name, attribute] : var.attrs) {
    WriteVarAttr(var, name, attribute, {out, VarField::kAttrs});
  }
}

// Puts an attribute's value into the field of its type.
class AttrValueWriter {
 public:
  explicit AttrValueWriter(pbf_builder<OpAttrField>* out) : out_(*out) {}

  void operator()(int32_t value) const { out_.add_int32(OpAttrField::kI, value); }
  void operator()(float value) const { out_.add_float(OpAttrField::kF, value); }
  void operator()(const std::string& value) const { out_.add_string(OpAttrField::kS, value); }
  void operator()(const std::vector<int32_t>& values) const {
    for (int32_t value : values) out_.add_int32(OpAttrField::kInts, value);
  }
  void operator()(const std::vector<float>& values) const {
    for (float value : values) out_.add_float(OpAttrField::kFloats, value);
  }
  void operator()(const std::vector<std::string>& values) const {
    for (const std::string& value : values) out_.add_string(OpAttrField::kStrings, value);
  }
  void operator()(bool value) const { out_.add_bool(OpAttrField::kB, value); }
  void operator()(const std::vector<bool>& values) const {
    for (bool value : values) out_.add_bool(OpAttrField::kBools, value);
  }
  void operator()(BlockIndex block) const { out_.add_int32(OpAttrField::kBlockIdx, block.value); }
  void operator()(int64_t value) const { out_.add_int64(OpAttrField::kL, value); }
  void operator()(const std::vector<BlockIndex>& blocks) const {
    for (BlockIndex block : blocks) out_.add_int32(OpAttrField::kBlocksIdx, block.value);
  }
  void operator()(const std::vector<int64_t>& values) const {
    for (int64_t value : values) out_.add_int64(OpAttrField::kLongs, value);
  }
  void operator()(const std::vector<double>& values) const {
    for (double value : values) out_.add_double(OpAttrField::kFloat64s, value);
  }
  void operator()(const VarName& var) const { out_.add_string(OpAttrField::kVarName, var.value); }
  void operator()(const std::vector<VarName>& vars) const {
    for (const VarName& var : vars) out_.add_string(OpAttrField::kVarsName, var.value);
  }
  void operator()(double value) const { out_.add_double(OpAttrField::kFloat64, value); }

 private:
  pbf_builder<OpAttrField>& out_;
};

void WriteAttr(const std::string& name, const Attribute& attribute, pbf_builder<OpAttrField> out) {
  out.add_string(OpAttrField::kName, name);
  out.add_enum(OpAttrField::kType, static_cast<int32_t>(TypeOf(attribute)));
  std::visit(AttrValueWriter(&out), static_cast<const AttributeVariant&>(attribute));
}

void WriteScalars(const std::string& name, const std::vector<double>& values,
                  pbf_builder<OpAttrField> out) {
  out.add_string(OpAttrField::kName, name);
  out.add_enum(OpAttrField::kType, wire::kScalarsType);
  for (const double value : values) {
    pbf_builder<wire::ScalarField> scalar(out, OpAttrField::kScalars);
    scalar.add_enum(wire::ScalarField::kType, static_cast<int32_t>(wire::ScalarType::kFloat64));
    scalar.add_double(wire::ScalarField::kR, value);
  }
}

void WriteSlot(const SlotArguments& slot, pbf_builder<OpVarField> out) {
  out.add_string(OpVarField::kParameter, slot.slot);
  for (const std::string& name : slot.arguments) out.add_string(OpVarField::kArguments, name);
}

void WriteOp(const Op& op, pbf_builder<OpField> out) {
  for (const SlotArguments& slot : op.inputs) WriteSlot(slot, {out, OpField::kInputs});
  for (const SlotArguments& slot : op.outputs) WriteSlot(slot, {out, OpField::kOutputs});
  out.add_string(OpField::kType, op.type);
  for (const auto& [name, attribute] : op.attrs) {
    const auto* doubles = std::get_if<std::vector<double>>(&attribute);
    if (doubles != nullptr && wire::AreScalars(name)) {
      WriteScalars(name, *doubles, {out, OpField::kAttrs});
    } else {
      WriteAttr(name, attribute, {out, OpField::kAttrs});
    }
  }
  if (op.is_target) out.add_bool(OpField::kIsTarget, true);
}

void WriteBlock(const Block& block, pbf_builder<BlockField> out) {
  out.add_int32(BlockField::kIdx, block.index());
  out.add_int32(BlockField::kParentIdx, block.parent_index());
  for (const auto& var : block.vars()) WriteVar(*var, {out, BlockField::kVars});
  for (const auto& op : block.ops()) WriteOp(*op, {out, BlockField::kOps});
  out.add_int32(BlockField::kForwardBlockIdx, block.forward_block_index);
}

void WriteOpVersion(const std::string& op, int32_t version, pbf_builder<OpVersionPairField> pair) {
  pair.add_string(OpVersionPairField::kOpName, op);
  pbf_builder<OpVersionField>(pair, OpVersionPairField::kOpVersion)
      .add_int32(OpVersionField::kVersion, version);
}

void WriteOpVersions(const Program& program, pbf_builder<OpVersionMapField> map) {
  for (const auto& [op, version] : program.op_versions) {
    WriteOpVersion(op, version, {map, OpVersionMapField::kPair});
  }
}

// libprotobuf takes lengths as int.
void CheckSize(const std::string& bytes, std::string_view what) {
  SKIFF_ENFORCE(bytes.size() <= static_cast<size_t>(std::numeric_limits<int>::max()), kOutOfRange,
                what, " can't be serialised: more than 2 GiB");
}

}  // namespace

std::string SerializeProgram(const Program& program) {
  std::string bytes;
  pbf_builder<ProgramField> desc(bytes);
  for (size_t i = 0; i < program.block_count(); ++i) {
    WriteBlock(*program.block(static_cast<int32_t>(i)), {desc, ProgramField::kBlocks});
  }
  pbf_builder<VersionField>(desc, ProgramField::kVersion)
      .add_int64(VersionField::kVersion, program.version);
  // The builder leaves out a message without fields.
  WriteOpVersions(program, {desc, ProgramField::kOpVersionMap});
  CheckSize(bytes, "the program");
  return bytes;
}

std::string SerializeTensorDesc(DType dtype, const std::vector<int64_t>& dims) {
  std::string bytes;
  WriteTensorDesc(dtype, dims, pbf_builder<TensorField>(bytes));
  CheckSize(bytes, "the TensorDesc");
  return bytes;
}

}  // namespace skiff
