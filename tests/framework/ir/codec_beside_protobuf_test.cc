// The codec beside libprotobuf, which knows the format by framework.proto: both write the same
// bytes, take the same bytes for messages, and understand the same by them.
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "framework/base/error.h"
#include "framework/ir/codec.h"
#include "framework/ir/text.h"
#include "tests/framework/ir/framework.pb.h"
#include "tests/framework/ir/random_program.h"
#include "tests/harness/damage_bytes.h"
#include "tests/harness/wire_bytes.h"

namespace skiff {
namespace {

using google::protobuf::FieldDescriptor;

// ---- what Skiff keeps of a message, in libprotobuf's terms

// Any negative dim is unknown.
void KeepDims(proto::VarType::TensorDesc* desc) {
  for (int64_t& dim : *desc->mutable_dims()) dim = std::max<int64_t>(dim, -1);
}

template <typename LoDDesc>
void CompleteLoDDesc(LoDDesc* desc) {
  if (!desc->has_tensor()) desc->mutable_tensor()->set_data_type(proto::VarType::FP32);
  KeepDims(desc->mutable_tensor());
  desc->set_lod_level(desc->lod_level());
}

bool IsDefault(const proto::VarType::LoDTensorDesc& desc) {
  return desc.lod_level() == 0 && desc.tensor().dims().empty() &&
         desc.tensor().data_type() == proto::VarType::FP32;
}

// Only the message of the variable's kind.
proto::VarType Kept(const proto::VarType& type) {
  proto::VarType kept;
  kept.set_type(type.type());
  switch (type.type()) {
    case proto::VarType::SELECTED_ROWS:
      kept.mutable_selected_rows()->set_data_type(proto::VarType::FP32);
      if (type.has_selected_rows()) *kept.mutable_selected_rows() = type.selected_rows();
      KeepDims(kept.mutable_selected_rows());
      break;
    case proto::VarType::LOD_TENSOR_ARRAY:
      *kept.mutable_tensor_array() = type.tensor_array();
      CompleteLoDDesc(kept.mutable_tensor_array());
      break;
    case proto::VarType::READER: {
      auto* tensor = kept.mutable_reader()->add_lod_tensor();
      if (type.reader().lod_tensor_size() > 0) *tensor = type.reader().lod_tensor(0);
      CompleteLoDDesc(tensor);
      break;
    }
    default:
      *kept.mutable_lod_tensor() = type.lod_tensor();
      CompleteLoDDesc(kept.mutable_lod_tensor());
      if (type.type() != proto::VarType::LOD_TENSOR && IsDefault(kept.lod_tensor())) {
        kept.clear_lod_tensor();
      }
  }
  return kept;
}

// The field that holds the value of an attribute of this type.
const char* ValueField(proto::AttrType type) {
  static const std::map<proto::AttrType, const char*> fields = {{proto::INT, "i"},
                                                                {proto::FLOAT, "f"},
                                                                {proto::STRING, "s"},
                                                                {proto::INTS, "ints"},
                                                                {proto::FLOATS, "floats"},
                                                                {proto::STRINGS, "strings"},
                                                                {proto::BOOLEAN, "b"},
                                                                {proto::BOOLEANS, "bools"},
                                                                {proto::BLOCK, "block_idx"},
                                                                {proto::LONG, "l"},
                                                                {proto::BLOCKS, "blocks_idx"},
                                                                {proto::LONGS, "longs"},
                                                                {proto::FLOAT64S, "float64s"},
                                                                {proto::VAR, "var_name"},
                                                                {proto::VARS, "vars_name"},
                                                                {proto::FLOAT64, "float64"}};
  return fields.at(type);
}

// The attributes by name, the last of a name, each with nothing but its value.
template <typename Attrs>
void KeepAttrs(Attrs* attrs) {
  std::map<std::string, typename Attrs::value_type> kept;
  for (auto& attr : *attrs) {
    const std::string value = ValueField(attr.type());
    for (int i = 0; i < attr.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = attr.GetDescriptor()->field(i);
      const bool is_kept =
          field->name() == "name" || field->name() == "type" || field->name() == value;
      if (!is_kept) attr.GetReflection()->ClearField(&attr, field);
    }
    kept[attr.name()] = attr;
  }
  attrs->Clear();
  for (const auto& [name, attr] : kept) *attrs->Add() = attr;
}

void KeepVar(proto::VarDesc* var) {
  *var->mutable_type() = Kept(var->type());
  var->set_persistable(var->persistable());
  if (!var->need_check_feed()) var->clear_need_check_feed();
  if (!var->is_parameter()) var->clear_is_parameter();
  if (!var->stop_gradient()) var->clear_stop_gradient();
  KeepAttrs(var->mutable_attrs());
}

// The bytes that Skiff writes after reading this.
std::string BytesKept(proto::ProgramDesc program) {
  program.DiscardUnknownFields();
  for (proto::BlockDesc& block : *program.mutable_blocks()) {
    const bool is_its_own = block.forward_block_idx() == block.idx();
    block.set_forward_block_idx(is_its_own ? -1 : block.forward_block_idx());
    for (proto::VarDesc& var : *block.mutable_vars()) KeepVar(&var);
    for (proto::OpDesc& op : *block.mutable_ops()) {
      KeepAttrs(op.mutable_attrs());
      if (!op.is_target()) op.clear_is_target();
    }
  }
  program.mutable_version()->set_version(program.version().version());
  if (program.op_version_map().pair().empty()) program.clear_op_version_map();
  return program.SerializeAsString();
}

// ---- the comparison

// Whether `error` is the codec's text for bytes of which libprotobuf says `expected`. Of a list of
// very many fields the codec names the first ones.
bool IsTextFor(const std::string& expected, const std::string& error) {
  const size_t more = error.find(" and ");
  return more == std::string::npos ? error == expected
                                   : expected.rfind(error.substr(0, more) + ", ", 0) == 0;
}

// What libprotobuf finds wrong with the bytes, in the codec's words; "" if they are a message.
template <typename Proto>
std::string Complaint(const std::string& bytes, Proto* message) {
  const std::string what = Proto::descriptor()->name();
  if (!message->ParsePartialFromString(bytes)) {
    return StrCat("the ", bytes.size(), " bytes are no ", what);
  }
  if (message->IsInitialized()) return "";
  return StrCat("the ", what, " lacks required fields, or has unknown enumerators in them: ",
                message->InitializationErrorString());
}

bool IsComplaint(const std::string& text) {
  return text.find(" bytes are no ") != std::string::npos ||
         text.find(" lacks required fields") != std::string::npos;
}

struct Counts {
  int no_messages = 0;
  int incomplete = 0;
  int refused = 0;  // messages that are no programs
  int programs = 0;
};

// Reads the bytes with both.
void Compare(const std::string& bytes, Counts* counts) {
  proto::ProgramDesc message;
  const std::string complaint = Complaint(bytes, &message);
  try {
    const std::string written = SerializeProgram(*ParseProgram(bytes));
    EXPECT_EQ(complaint, "") << "but the codec has read it";
    EXPECT_EQ(written, BytesKept(message));
    ++counts->programs;
  } catch (const Error& error) {
    const std::string text = error.what();
    if (!complaint.empty()) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss) << text;
      EXPECT_TRUE(IsTextFor(complaint, text)) << text << "\nexpected: " << complaint;
      ++(message.IsInitialized() ? counts->no_messages : counts->incomplete);
    } else {
      EXPECT_TRUE(error.code() == ErrorCode::kDataLoss || error.code() == ErrorCode::kUnimplemented)
          << text;
      EXPECT_FALSE(IsComplaint(text)) << text;
      ++counts->refused;
    }
  }
}

// Whether both take the bytes for a program, and for the same one.
bool IsProgram(const std::string& bytes) {
  Counts counts;
  Compare(bytes, &counts);
  return counts.programs == 1;
}

// Reads a TensorDesc with both. Returns whether it is one.
bool IsTensorDesc(const std::string& bytes) {
  proto::VarType::TensorDesc message;
  const std::string complaint = Complaint(bytes, &message);
  DType dtype = DType::kBool;
  std::vector<int64_t> dims;
  try {
    ParseTensorDesc(bytes, &dtype, &dims);
    EXPECT_EQ(complaint, "") << "but the codec has read it";
    EXPECT_EQ(static_cast<int32_t>(dtype), message.data_type());
    EXPECT_EQ(dims, std::vector<int64_t>(message.dims().begin(), message.dims().end()));
    return true;
  } catch (const Error& error) {
    const bool is_unsupported = error.code() == ErrorCode::kUnimplemented;
    EXPECT_EQ(is_unsupported ? "" : error.what(), complaint) << error.what();
    return false;
  }
}

class CodecBesideProtobuf : public testing::Test {
 private:
  // Debug builds of libprotobuf complain of strings that aren't UTF-8.
  google::protobuf::LogSilencer silencer_;
};

// ---- pieces of programs

std::string Root(const std::string& rest) {
  return BytesField(1, IntField(1, 0) + IntField(2, -1) + rest);
}

std::string RootWithVar(const std::string& type) {
  return Root(BytesField(3, BytesField(1, "x") + type));
}

std::string RootWithAttr(int type, const std::string& value) {
  const std::string attr = BytesField(1, "a") + IntField(2, type) + value;
  return Root(BytesField(4, BytesField(3, "f") + BytesField(4, attr)));
}

// The only attribute of the only op.
Attribute AttrOf(const std::string& bytes) {
  return ParseProgram(bytes)->root()->ops().at(0)->attrs.at("a");
}

// ---- tests

TEST_F(CodecBesideProtobuf, WritesTheSameBytes) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const std::string bytes = SerializeProgram(*RandomProgram(seed, {.storable = true}));
    proto::ProgramDesc message;
    ASSERT_TRUE(message.ParseFromString(bytes)) << "seed " << seed;
    EXPECT_EQ(message.SerializeAsString(), bytes) << "seed " << seed;
    EXPECT_EQ(BytesKept(message), bytes) << "seed " << seed;
  }
}

TEST_F(CodecBesideProtobuf, WritesTheSameTensorDesc) {
  proto::VarType::TensorDesc message;
  message.set_data_type(proto::VarType::BF16);
  for (int64_t dim : {int64_t{-1}, int64_t{0}, int64_t{1} << 62}) message.add_dims(dim);
  EXPECT_EQ(SerializeTensorDesc(DType::kBFloat16, {-1, 0, int64_t{1} << 62}),
            message.SerializeAsString());
}

TEST_F(CodecBesideProtobuf, ReadsTheSameAfterThousandsOfMutations) {
  std::mt19937 random(30);
  Counts counts;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    Compare(DamageBytes(SerializeProgram(*RandomProgram(seed, {.storable = true})), &random),
            &counts);
  }
  EXPECT_GT(counts.no_messages, 500);
  EXPECT_GT(counts.incomplete, 100);
  EXPECT_GT(counts.refused, 3);
  EXPECT_GT(counts.programs, 100);
}

TEST_F(CodecBesideProtobuf, ReadsTheSameForEveryValueOfEachByte) {
  const std::string bytes = SerializeProgram(*ParseProgramText(R"(program version=2006002 {
    op_version f = 3
    block 0 {
      var x float32 [-1, 4] lod=1 {i = 9}
      {Out: [x]} = f(X: [x]) target {b = true, d = double 0.5, f = 0.5, is = ints [1], s = "t"}
    }
  })"));
  Counts counts;
  for (size_t position = 0; position < bytes.size(); ++position) {
    std::string damaged = bytes;
    for (int value = 0; value < 256; ++value) {
      SCOPED_TRACE(StrCat("byte ", position, " = ", value));
      damaged[position] = static_cast<char>(value);
      Compare(damaged, &counts);
    }
  }
  EXPECT_GT(counts.no_messages, 5000);
  EXPECT_GT(counts.incomplete, 1000);
  EXPECT_GT(counts.refused, 500);
  EXPECT_GT(counts.programs, 5000);
}

// Tags, lengths and varints at their borders, groups and all wire types, in short messages.
TEST_F(CodecBesideProtobuf, ReadsTheSameTensorDescs) {
  const std::string pieces[] = {IntField(1, 5),
                                IntField(2, -1),
                                Tag(1, 0),
                                Tag(1, 2),
                                Tag(2, 2),
                                Tag(1, 3),
                                Tag(1, 4),
                                Tag(2, 3),
                                Tag(2, 4),
                                Tag(2, 1),
                                Tag(2, 5),
                                Tag(3, 0),
                                Tag(3, 6),
                                Tag(3, 7),
                                Tag(0, 0),
                                Tag(0, 2),
                                "\x80",
                                "\xff",
                                "\x01",
                                "\x02",
                                "\x7f",
                                std::string(1, '\0'),
                                Tag(19000, 0),
                                Tag(1 << 28, 2),
                                Varint(1ull << 31),
                                Varint(1ull << 35),
                                Varint(~0ull),
                                std::string(9, '\xff'),
                                "\x82\x80\x80\x80",
                                "\x81\x80\x80\x80\x80"};
  std::mt19937 random(31);
  int descs = 0;
  constexpr int kTries = 30000;
  for (int i = 0; i < kTries; ++i) {
    std::string bytes = random() % 2 == 0 ? "" : IntField(1, 5);
    for (size_t count = random() % 6; count > 0; --count) {
      bytes += pieces[random() % std::size(pieces)];
    }
    if (IsTensorDesc(bytes)) ++descs;
    ASSERT_FALSE(HasFailure()) << testing::PrintToString(bytes);
  }
  EXPECT_GT(descs, kTries / 10);
  EXPECT_LT(descs, kTries / 2);
}

// A message that is there twice is put together from its parts, in any depth.
TEST_F(CodecBesideProtobuf, MergesMessagesThatAreThereTwice) {
  const auto tensor = [](const std::string& fields) {
    return BytesField(2, BytesField(3, BytesField(1, fields)));
  };
  const std::string bytes =
      RootWithVar(BytesField(2, IntField(1, 7)) + tensor(IntField(2, 3)) +
                  tensor(IntField(1, 3) + IntField(2, 4)) +
                  BytesField(2, BytesField(3, IntField(2, 1))) + BytesField(2, ""));
  EXPECT_TRUE(IsProgram(bytes));
  const auto program = ParseProgram(bytes);
  const Var& x = *program->root()->GetVar("x");
  EXPECT_EQ(x.dtype, DType::kInt64);
  EXPECT_EQ(x.dims, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(x.lod_level, 1);

  const auto pair = [](const std::string& op, int version) {
    return BytesField(5, BytesField(1, BytesField(1, op) + BytesField(2, IntField(1, version))));
  };
  const std::string versions =
      Root("") + BytesField(4, IntField(1, 7)) + BytesField(4, "") + pair("f", 1) + pair("g", 2);
  EXPECT_TRUE(IsProgram(versions));
  EXPECT_EQ(ParseProgram(versions)->version, 7);
  EXPECT_EQ(ParseProgram(versions)->op_versions.size(), 2u);
}

TEST_F(CodecBesideProtobuf, NeedsTheRequiredFieldsOfTheMergedMessageOnly) {
  const std::string kind = BytesField(2, IntField(1, 7));
  EXPECT_FALSE(IsProgram(RootWithVar(BytesField(2, ""))));
  EXPECT_TRUE(IsProgram(RootWithVar(BytesField(2, "") + kind)));
  EXPECT_FALSE(IsProgram(RootWithVar("")));
  // Messages that no variable of Skiff has are checked as well.
  for (const int number : {8, 9, 10, 11, 12}) {
    const auto desc = [&](const std::string& fields) {
      return RootWithVar(kind + BytesField(2, BytesField(number, fields)));
    };
    EXPECT_FALSE(IsProgram(desc(IntField(2, 1))));
    EXPECT_TRUE(IsProgram(desc(IntField(1, 23))));
  }
  EXPECT_TRUE(IsProgram(RootWithVar(kind + BytesField(2, BytesField(7, IntField(1, 99))))));
  EXPECT_FALSE(IsProgram(RootWithVar(kind + BytesField(2, BytesField(7, BytesField(1, "\xff"))))));
}

TEST_F(CodecBesideProtobuf, NamesTheFirstOfManyMissingFields) {
  EXPECT_FALSE(IsProgram(Repeated(BytesField(1, ""), 10)));
  EXPECT_FALSE(IsProgram(Repeated(BytesField(1, ""), 11)));
  try {
    ParseProgram(Repeated(BytesField(1, ""), 11));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("[9].idx, blocks[9].parent_idx and 2 more"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(CodecBesideProtobuf, TakesTheLastOfScalarsThatAreThereTwice) {
  const std::string bytes = RootWithAttr(0, IntField(3, 1) + IntField(3, 2));
  EXPECT_TRUE(IsProgram(bytes));
  EXPECT_EQ(std::get<int32_t>(AttrOf(bytes)), 2);
  EXPECT_TRUE(IsProgram(RootWithAttr(2, BytesField(5, "long") + BytesField(5, ""))));
  // An unknown enumerator takes nothing away.
  EXPECT_TRUE(IsProgram(RootWithAttr(0, IntField(3, 1) + IntField(2, 99))));
  EXPECT_TRUE(IsTensorDesc(IntField(1, 5) + IntField(1, 99)));
  EXPECT_FALSE(IsTensorDesc(IntField(1, 99)));
  EXPECT_FALSE(IsTensorDesc(IntField(1, -1)));
}

TEST_F(CodecBesideProtobuf, ReadsListsPackedUnpackedAndMixed) {
  const std::string half("\0\0\0\x3f", 4);
  const std::string half64("\0\0\0\0\0\0\xe0\x3f", 8);
  const std::string zero_in_two_bytes("\x80\0", 2);
  const auto mixed = [&](int type, int number, const std::string& one) {
    return RootWithAttr(type,
                        one + BytesField(number, "") + BytesField(number, one.substr(1)) + one);
  };
  EXPECT_TRUE(IsProgram(mixed(3, 6, IntField(6, -7))));
  EXPECT_EQ(std::get<std::vector<int32_t>>(AttrOf(mixed(3, 6, IntField(6, -7)))),
            (std::vector<int32_t>{-7, -7, -7}));
  EXPECT_TRUE(IsProgram(mixed(4, 7, Fixed32Field(7, half))));
  EXPECT_TRUE(IsProgram(mixed(7, 11, Tag(11, 0) + Varint(1ull << 32))));
  EXPECT_TRUE(IsProgram(mixed(7, 11, Tag(11, 0) + zero_in_two_bytes)));
  EXPECT_TRUE(IsProgram(mixed(10, 14, IntField(14, 0))));
  EXPECT_TRUE(IsProgram(mixed(11, 15, IntField(15, -7))));
  EXPECT_TRUE(IsProgram(RootWithAttr(12, Fixed64Field(16, half64) + BytesField(16, half64))));
  // A list that ends within an element.
  EXPECT_FALSE(IsProgram(RootWithAttr(3, BytesField(6, "\x80"))));
  EXPECT_FALSE(IsProgram(RootWithAttr(4, BytesField(7, half + "a"))));
  EXPECT_FALSE(IsProgram(RootWithAttr(12, BytesField(16, half))));
}

TEST_F(CodecBesideProtobuf, CutsNumbersToTheirTypes) {
  const std::string wide = RootWithAttr(0, Tag(3, 0) + Varint((1ull << 40) + 5));
  EXPECT_TRUE(IsProgram(wide));
  EXPECT_EQ(std::get<int32_t>(AttrOf(wide)), 5);
  // The bits of a bool may all be in the last byte, or it may be a zero of several bytes.
  const std::string far_bit = RootWithAttr(6, Tag(10, 0) + Varint(1ull << 63));
  EXPECT_TRUE(IsProgram(far_bit));
  EXPECT_TRUE(std::get<bool>(AttrOf(far_bit)));
  const std::string long_zero = RootWithAttr(6, Tag(10, 0) + std::string("\x80\x80\0", 3));
  EXPECT_TRUE(IsProgram(long_zero));
  EXPECT_FALSE(std::get<bool>(AttrOf(long_zero)));
  EXPECT_TRUE(IsTensorDesc(Tag(1, 0) + Varint((1ull << 32) + 5)));
  // Ten bytes at most, of which the last one has one bit to give.
  EXPECT_TRUE(IsTensorDesc(IntField(1, 5) + Tag(2, 0) + std::string(9, '\xff') + "\x7f"));
  EXPECT_FALSE(IsTensorDesc(IntField(1, 5) + Tag(2, 0) + std::string(10, '\xff') + "\x01"));
  EXPECT_FALSE(IsTensorDesc(IntField(1, 5) + Tag(9, 0) + std::string(10, '\xff') + "\x01"));
}

TEST_F(CodecBesideProtobuf, SkipsFieldsOfAnotherWireType) {
  const std::string eight(8, 'x');
  const std::string i = IntField(3, 1);
  for (const std::string& other :
       {Fixed64Field(3, eight), BytesField(3, eight), Fixed32Field(3, "xxxx"), Group(3, "")}) {
    EXPECT_TRUE(IsProgram(RootWithAttr(0, i + other)));
    EXPECT_FALSE(IsProgram(RootWithAttr(0, other)));  // no value
  }
  EXPECT_TRUE(IsProgram(RootWithAttr(3, Fixed32Field(6, "xxxx") + IntField(6, 1))));
  EXPECT_TRUE(IsProgram(RootWithAttr(5, IntField(8, 1) + BytesField(8, "s"))));
  EXPECT_TRUE(IsProgram(Root("") + IntField(1, 7) + Group(1, IntField(1, 1))));
  EXPECT_FALSE(IsProgram(Root("") + Tag(1, 6)));
  EXPECT_FALSE(IsProgram(Root("") + Tag(1, 7)));
}

TEST_F(CodecBesideProtobuf, SkipsUnknownFields) {
  const std::string eight(8, 'x');
  for (const int number : {6, 100, 19000, (1 << 29) - 1}) {
    for (const std::string& field :
         {IntField(number, -1), Fixed64Field(number, eight), BytesField(number, "\xff\xff"),
          Fixed32Field(number, "xxxx"), Group(number, IntField(1, 1))}) {
      EXPECT_TRUE(IsProgram(field + Root(field) + field));
      EXPECT_FALSE(IsProgram(Root(field.substr(0, field.size() - 1))));
    }
  }
}

TEST_F(CodecBesideProtobuf, SkipsGroupsThatEnd) {
  const auto nested = [](int depth) {
    return Repeated(Tag(9, 3), static_cast<size_t>(depth)) +
           Repeated(Tag(9, 4), static_cast<size_t>(depth));
  };
  EXPECT_TRUE(IsProgram(Root("") + Group(9, Group(10, BytesField(1, "\xff")) + IntField(1, 1))));
  // Messages around a group count as groups.
  EXPECT_TRUE(IsProgram(Root("") + nested(100)));
  EXPECT_FALSE(IsProgram(Root("") + nested(101)));
  EXPECT_TRUE(IsProgram(Root(nested(99))));
  EXPECT_FALSE(IsProgram(Root(nested(100))));
  EXPECT_TRUE(IsProgram(Root("") + BytesField(4, nested(99))));
  EXPECT_FALSE(IsProgram(Root("") + BytesField(4, nested(100))));
  EXPECT_TRUE(IsProgram(Root("") + nested(100) + nested(100)));
  EXPECT_FALSE(IsProgram(Root("") + Tag(9, 3)));
  EXPECT_FALSE(IsProgram(Root("") + Tag(9, 4)));
  EXPECT_FALSE(IsProgram(Root("") + Tag(9, 3) + Tag(10, 4)));
  EXPECT_FALSE(IsProgram(Root("") + Group(9, Tag(1, 6))));
  // A group can't end in another message than its own.
  EXPECT_FALSE(IsProgram(Root(Tag(9, 3)) + Tag(9, 4)));
}

TEST_F(CodecBesideProtobuf, RefusesTagsAndLengthsOutOfRange) {
  for (const int wire_type : {0, 1, 2, 3, 4, 5}) {
    EXPECT_FALSE(IsProgram(Root("") + Tag(0, wire_type) + std::string(8, '\0')));
  }
  // Five bytes at most, of which a tag gives what fits into 32 bits.
  const std::string padding = "\x80\x80\x80\x80";
  EXPECT_TRUE(IsTensorDesc(std::string("\x88\x80\x80\x80\0\x05", 6)));
  EXPECT_TRUE(IsTensorDesc(std::string("\x88\x80\x80\x80\x70\x05", 6)));
  EXPECT_FALSE(IsTensorDesc("\x88" + padding + std::string("\0\x05", 2)));
  const auto with_length = [](const std::string& length) {
    return IntField(1, 5) + Tag(3, 2) + length + "a";
  };
  EXPECT_TRUE(IsTensorDesc(with_length(std::string("\x81\x80\x80\x80\0", 5))));
  EXPECT_FALSE(IsTensorDesc(with_length("\x81" + padding + std::string(1, '\0'))));
  for (const uint64_t length : {uint64_t{2}, uint64_t{1} << 31, (uint64_t{1} << 32) + 1, ~0ul}) {
    EXPECT_FALSE(IsTensorDesc(with_length(Varint(length))));
  }
  // A length that leaves the message but not the file.
  EXPECT_FALSE(IsProgram(Root(Tag(4, 2) + Varint(3)) + IntField(9, 1)));
}

}  // namespace
}  // namespace skiff
