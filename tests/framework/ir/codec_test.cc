#include "framework/ir/codec.h"

#include <gtest/gtest.h>

#include <random>
#include <tuple>

#include "framework/base/error.h"
#include "framework/ir/text.h"
#include "tests/framework/ir/random_program.h"
#include "tests/harness/error_text.h"
#include "tests/harness/wire_bytes.h"

namespace skiff {
namespace {

using Bytes = std::string;

// ---- files, by hand

// VarDesc "x": lod_tensor, float32, [-1, 4], level 1, persistable.
Bytes VarX() {
  const Bytes tensor = IntField(1, 5) + IntField(2, -1) + IntField(2, 4);
  const Bytes type = IntField(1, 7) + BytesField(3, BytesField(1, tensor) + IntField(2, 1));
  return BytesField(1, "x") + BytesField(2, type) + IntField(3, 1);
}

Bytes Attr(const Bytes& name, int type, const Bytes& value) {
  return BytesField(4, BytesField(1, name) + IntField(2, type) + value);
}

// One attribute of each type, in the order of their names.
Bytes AllAttrs() {
  const Bytes half("\0\0\0\x3f", 4);
  const Bytes half64("\0\0\0\0\0\0\xe0\x3f", 8);
  return Attr("a00", 0, IntField(3, -2)) + Attr("a01", 1, Fixed32Field(4, half)) +
         Attr("a02", 2, BytesField(5, "text")) + Attr("a03", 3, IntField(6, 1) + IntField(6, -1)) +
         Attr("a04", 4, Fixed32Field(7, half) + Fixed32Field(7, half)) +
         Attr("a05", 5, BytesField(8, "s") + BytesField(8, "")) + Attr("a06", 6, IntField(10, 1)) +
         Attr("a07", 7, IntField(11, 1) + IntField(11, 0)) + Attr("a08", 8, IntField(12, 1)) +
         Attr("a09", 9, IntField(13, -3)) + Attr("a10", 10, IntField(14, 1) + IntField(14, 0)) +
         Attr("a11", 11, IntField(15, 1) + IntField(15, -1)) +
         Attr("a12", 12, Fixed64Field(16, half64)) + Attr("a13", 13, BytesField(17, "x")) +
         Attr("a14", 14, BytesField(18, "x") + BytesField(18, "y")) +
         Attr("a15", 15, Fixed64Field(19, half64));
}

Bytes GoldenBytes() {
  const Bytes op = BytesField(1, BytesField(1, "X") + BytesField(2, "x") + BytesField(2, "z")) +
                   BytesField(2, BytesField(1, "Out") + BytesField(2, "y")) + BytesField(3, "mul") +
                   AllAttrs() + IntField(5, 1);
  const Bytes array = BytesField(1, IntField(1, 3)) + IntField(2, 0);
  const Bytes rows = IntField(1, 6) + IntField(2, 7);
  const Bytes var_y = BytesField(1, "y") + BytesField(2, IntField(1, 13) + BytesField(4, array)) +
                      IntField(3, 0) + IntField(4, 1) + IntField(5, 1) + IntField(6, 1) +
                      BytesField(7, BytesField(1, "i") + IntField(2, 0) + IntField(3, 9)) +
                      BytesField(7, BytesField(1, "is") + IntField(2, 3) + IntField(5, 9)) +
                      BytesField(7, BytesField(1, "s") + IntField(2, 2) + BytesField(4, "t"));
  const Bytes var_z =
      BytesField(1, "z") + BytesField(2, IntField(1, 8) + BytesField(2, rows)) + IntField(3, 0);
  const Bytes var_f = BytesField(1, "feed") + BytesField(2, IntField(1, 9)) + IntField(3, 0);
  const Bytes root = IntField(1, 0) + IntField(2, -1) + BytesField(3, VarX()) +
                     BytesField(3, var_y) + BytesField(3, var_z) + BytesField(3, var_f) +
                     BytesField(4, op) + IntField(5, -1);
  const Bytes inner = IntField(1, 1) + IntField(2, 0) + IntField(5, 0);
  const Bytes op_version = BytesField(1, BytesField(1, "mul") + BytesField(2, IntField(1, 3)));
  return BytesField(1, root) + BytesField(1, inner) + BytesField(4, IntField(1, 2006002)) +
         BytesField(5, op_version);
}

std::unique_ptr<Program> GoldenProgram() {
  return ParseProgramText(R"(
program version=2006002 {
  op_version mul = 3
  block 0 {
    var x float32 [-1, 4] lod=1 persistable
    param y lod_tensor_array int64 [] stop_gradient check_feed {i = 9, is = ints [9], s = "t"}
    var z selected_rows float64 [7]
    var feed feed_minibatch float32 []
    {Out: [y]} = mul(X: [x, z]) target {
      a00 = -2, a01 = 0.5, a02 = "text", a03 = ints [1, -1], a04 = floats [0.5, 0.5],
      a05 = strings ["s", ""], a06 = true, a07 = bools [true, false], a08 = block 1,
      a09 = long -3, a10 = blocks [1, 0], a11 = longs [1, -1], a12 = doubles [0.5], a13 = var x,
      a14 = vars [x, y], a15 = double 0.5}
  }
  block 1 parent=0 forward=0 {
  }
})");
}

Error ErrorOf(const Bytes& bytes) {
  try {
    ParseProgram(bytes);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorCode::kIo, "");
}

Bytes BlockBytes(int idx, int parent, const Bytes& rest = "") {
  return BytesField(1, IntField(1, idx) + IntField(2, parent) + rest);
}

Bytes RootWithOp(const Bytes& op) { return BlockBytes(0, -1, BytesField(4, op)); }

Bytes VarOfType(int type) {
  return BytesField(3, BytesField(1, "x") + BytesField(2, IntField(1, type)));
}

Bytes VarOfDType(int dtype) {
  const Bytes tensor = BytesField(3, BytesField(1, IntField(1, dtype)));
  return BytesField(3, BytesField(1, "x") + BytesField(2, IntField(1, 7) + tensor));
}

void ExpectDataLoss(const Bytes& bytes, const std::string& message) {
  const Error error = ErrorOf(bytes);
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss) << error.what();
  EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
}

// ---- tests

TEST(ProgramCodec, WritesTheFieldNumbersOfFluid) {
  EXPECT_EQ(SerializeProgram(*GoldenProgram()), GoldenBytes());
}

TEST(ProgramCodec, ReadsTheFieldNumbersOfFluid) {
  const auto program = ParseProgram(GoldenBytes());
  EXPECT_EQ(PrintProgram(*program), PrintProgram(*GoldenProgram()));
}

TEST(ProgramCodec, RoundTripsRandomPrograms) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const auto program = RandomProgram(seed, {.storable = true});
    const Bytes bytes = SerializeProgram(*program);
    const auto parsed = ParseProgram(bytes);
    ASSERT_TRUE(*parsed == *program) << "seed " << seed << "\n" << PrintProgram(*program);
    EXPECT_EQ(parsed->version, program->version);
    EXPECT_EQ(parsed->op_versions, program->op_versions);
    EXPECT_EQ(SerializeProgram(*parsed), bytes);
  }
}

TEST(ProgramCodec, GivesOpsTheirIdsInOrder) {
  const auto program =
      ParseProgram(SerializeProgram(*ParseProgramText("program { block 0 { {} = a() {} = b() }"
                                                      " block 1 parent=0 { {} = c() } }")));
  EXPECT_EQ(program->root()->ops()[0]->id, 0);
  EXPECT_EQ(program->root()->ops()[1]->id, 1);
  EXPECT_EQ(program->block(1)->ops()[0]->id, 2);
  EXPECT_EQ(program->NextOpId(), 3);
}

TEST(ProgramCodec, LeavesOutWhatTheFormatHasNoPlaceFor) {
  Program program;
  program.seed = 7;
  program.root()->CreateVar(
      {.name = "w", .is_parameter = true, .learning_rate_factor = 0.5f, .trainable = false});
  const auto parsed = ParseProgram(SerializeProgram(program));
  EXPECT_EQ(parsed->seed, 0u);
  EXPECT_EQ(parsed->root()->GetVar("w")->learning_rate_factor, 1.0f);
  EXPECT_TRUE(parsed->root()->GetVar("w")->trainable);
  EXPECT_TRUE(parsed->root()->GetVar("w")->is_parameter);
}

TEST(ProgramCodec, RefusesVariableAttributesThatTheFormatLacks) {
  Program program;
  program.root()->CreateVar({.name = "w"})->attrs["x"] = 0.5f;
  EXPECT_EQ(InvalidArgumentText([&] { SerializeProgram(program); }),
            "variable \"w\": attribute \"x\" is of type float, but the file format has only "
            "int, string and ints there");
}

TEST(ProgramCodec, ToleratesFieldsOfOlderAndNewerWriters) {
  const Bytes root = BlockBytes(0, -1);
  const auto plain = ParseProgram(root);
  const Bytes compatible_map = BytesField(3, BytesField(2, "1.6.0"));
  for (const Bytes& extra : {BytesField(2, IntField(1, 1005000)), IntField(2, 7), compatible_map,
                             BytesField(100, "new")}) {
    EXPECT_TRUE(*ParseProgram(root + extra) == *plain);
    EXPECT_TRUE(*ParseProgram(extra + root) == *plain);
  }
}

TEST(ProgramCodec, ReadsPackedLists) {
  const Bytes packed = Varint(2) + Varint(3);
  const Bytes op = BytesField(3, "f") +
                   BytesField(4, BytesField(1, "a") + IntField(2, 3) + BytesField(6, packed));
  const auto program = ParseProgram(RootWithOp(op));
  EXPECT_EQ(program->root()->ops()[0]->Attr<std::vector<int32_t>>("a"),
            (std::vector<int32_t>{2, 3}));
}

TEST(ProgramCodec, RefusesAProgramWithoutBlocks) {
  ExpectDataLoss("", "no blocks");
  ExpectDataLoss(BytesField(4, IntField(1, 1)), "no blocks");
}

TEST(ProgramCodec, RefusesBlocksOutOfPlace) {
  ExpectDataLoss(BlockBytes(1, -1), "block 0 says that its index is 1");
  ExpectDataLoss(BlockBytes(0, 0), "parent 0, expected one in [-1, 0)");
  ExpectDataLoss(BlockBytes(0, -1) + BlockBytes(1, 1), "parent 1, expected one in [-1, 1)");
  ExpectDataLoss(BlockBytes(0, -1) + BlockBytes(1, -2), "parent -2");
  ExpectDataLoss(BlockBytes(0, -1, IntField(5, 1)), "forward block 1");
  ExpectDataLoss(BlockBytes(0, -1, IntField(5, -2)), "forward block -2");
}

TEST(ProgramCodec, RefusesNamesTwiceOrEmpty) {
  const Bytes x = BytesField(3, VarX());
  ExpectDataLoss(BlockBytes(0, -1, x + x), "variable \"x\" is there twice");
  ExpectDataLoss(
      BlockBytes(0, -1, BytesField(3, BytesField(1, "") + BytesField(2, IntField(1, 7)))),
      "empty name");
  const Bytes slot = BytesField(1, BytesField(1, "X"));
  ExpectDataLoss(RootWithOp(slot + slot + BytesField(3, "f")), "slot \"X\" is there twice");
}

// PaddlePaddle 2.6 writes some attributes of reshape2, transpose2 and their gradients twice.
TEST(ProgramCodec, TakesTheLastOfAttributesThatAreThereTwice) {
  const Bytes first = Attr("mkldnn_data_type", 2, BytesField(5, "float32"));
  const Bytes last = Attr("mkldnn_data_type", 2, BytesField(5, "bfloat16"));
  const Bytes once = Attr("use_mkldnn", 6, IntField(10, 1));
  const Bytes of_another_type = Attr("use_mkldnn", 0, IntField(3, 7));
  const auto program = ParseProgram(
      RootWithOp(BytesField(3, "reshape2") + first + of_another_type + first + once + last));
  const Op& op = *program->root()->ops()[0];
  EXPECT_EQ(op.attrs.size(), 2u);
  EXPECT_EQ(op.Attr<std::string>("mkldnn_data_type"), "bfloat16");
  EXPECT_EQ(op.Attr<bool>("use_mkldnn"), true);
}

TEST(ProgramCodec, TakesTheLastOfAVariablesAttributesThatAreThereTwice) {
  const auto attr = [](int64_t value) {
    return BytesField(7, BytesField(1, "i") + IntField(2, 0) + IntField(3, value));
  };
  const auto program = ParseProgram(BlockBytes(0, -1, BytesField(3, VarX() + attr(1) + attr(2))));
  EXPECT_EQ(std::get<int32_t>(program->root()->GetVar("x")->attrs.at("i")), 2);
}

TEST(ProgramCodec, WarnsOfAttributesThatAreThereTwice) {
  const auto attr = [](const Bytes& name) { return Attr(name, 0, IntField(3, 1)); };
  const Bytes fine = BytesField(4, BytesField(3, "fine") + attr("a") + attr("b"));
  const Bytes twice =
      BytesField(4, BytesField(3, "f") + attr("b") + attr("a") + attr("b") + attr("a") + attr("a"));
  const Bytes var_attr = BytesField(7, BytesField(1, "i") + IntField(2, 0) + IntField(3, 9));
  std::vector<std::string> warnings;
  ParseProgram(BlockBytes(0, -1, BytesField(3, VarX() + var_attr + var_attr) + fine) +
                   BlockBytes(1, 0, fine + twice),
               &warnings);
  EXPECT_EQ(warnings,
            (std::vector<std::string>{
                "block 0: variable \"x\": each of these attributes is there more than once, and "
                "its last value counts: i",
                "block 1, op #1 \"f\": each of these attributes is there more than once, and its "
                "last value counts: a, b"}));
}

TEST(ProgramCodec, TakesNegativeDimsForUnknown) {
  const Bytes tensor = IntField(1, 5) + IntField(2, -8) + IntField(2, 4) + IntField(2, INT64_MIN);
  const Bytes type = IntField(1, 7) + BytesField(3, BytesField(1, tensor));
  std::vector<std::string> warnings;
  const auto program = ParseProgram(
      BlockBytes(0, -1, BytesField(3, BytesField(1, "mean") + BytesField(2, type))), &warnings);
  EXPECT_EQ(program->root()->GetVar("mean")->dims, (std::vector<int64_t>{-1, 4, -1}));
  EXPECT_EQ(warnings,
            (std::vector<std::string>{"block 0: variable \"mean\": its dims are [-8, 4, "
                                      "-9223372036854775808]; those below -1 are unknown"}));
}

TEST(ProgramCodec, TakesABlockThatIsItsOwnForwardBlockForOneWithoutAny) {
  const auto program = ParseProgram(BlockBytes(0, -1) + BlockBytes(1, 0, IntField(5, 1)));
  EXPECT_EQ(program->block(1)->forward_block_index, -1);
}

TEST(ProgramCodec, ChecksEachOfTheAttributesThatAreThereTwice) {
  const Bytes type = BytesField(3, "f");
  const Bytes good = Attr("sub_block", 8, IntField(12, 0));
  ExpectDataLoss(RootWithOp(type + Attr("sub_block", 8, IntField(12, 5)) + good), "names block 5");
}

TEST(ProgramCodec, RefusesSubBlocksOutOfRange) {
  const Bytes type = BytesField(3, "f");
  ExpectDataLoss(RootWithOp(type + Attr("sub_block", 8, IntField(12, 1))),
                 "block 0, op #0 \"f\": attribute \"sub_block\" names block 1, expected one in "
                 "[0, 1)");
  ExpectDataLoss(RootWithOp(type + Attr("sub_block", 8, IntField(12, -1))), "names block -1");
  ExpectDataLoss(RootWithOp(type + Attr("blocks", 10, IntField(14, 0) + IntField(14, 9))),
                 "names block 9");
}

TEST(ProgramCodec, NamesTheOpThatHasABadAttribute) {
  const Bytes fine = BytesField(4, BytesField(3, "fine"));
  const Bytes type = BytesField(4, BytesField(3, "f") + Attr("a", 8, IntField(12, -5)));
  ExpectDataLoss(BlockBytes(0, -1) + BlockBytes(1, 0, fine + type),
                 "block 1, op #1 \"f\": attribute \"a\" names block -5, expected one in [0, 2)");
  const Bytes empty = BytesField(4, BytesField(3, "f") + Attr("a", 0, ""));
  ExpectDataLoss(BlockBytes(0, -1, fine + fine + empty),
                 "block 0, op #2 \"f\": attribute \"a\" of type INT has no value");
}

TEST(ProgramCodec, RefusesAttributesWithoutAValue) {
  for (int type : {0, 1, 2, 6, 8, 9, 13, 15}) {
    ExpectDataLoss(RootWithOp(BytesField(3, "f") + Attr("a", type, "")), "has no value");
  }
}

TEST(ProgramCodec, RefusesAttributesOfAVariableWithoutAValue) {
  for (int type : {0, 2}) {
    const Bytes attr = BytesField(1, "a") + IntField(2, type);
    ExpectDataLoss(BlockBytes(0, -1,
                              BytesField(3, BytesField(1, "x") + BytesField(2, IntField(1, 7)) +
                                                BytesField(7, attr))),
                   "has no value");
  }
}

TEST(ProgramCodec, RefusesEnumeratorsItDoesNotKnow) {
  ExpectDataLoss(RootWithOp(BytesField(3, "f") + Attr("a", 18, IntField(3, 1))), "attrs[0].type");
  ExpectDataLoss(BlockBytes(0, -1, VarOfType(32)), "type.type");
  ExpectDataLoss(BlockBytes(0, -1, VarOfDType(32)), "data_type");
}

TEST(ProgramCodec, NamesTheTypesItDoesNotSupport) {
  // A tuple, a plain float, a vocabulary; a complex number, a size.
  for (int type : {18, 5, 27}) {
    EXPECT_EQ(ErrorOf(BlockBytes(0, -1, VarOfType(type))).code(), ErrorCode::kUnimplemented);
  }
  for (int dtype : {23, 19}) {
    EXPECT_EQ(ErrorOf(BlockBytes(0, -1, VarOfDType(dtype))).code(), ErrorCode::kUnimplemented);
  }
  const Error error = ErrorOf(BlockBytes(0, -1, VarOfDType(23)));
  EXPECT_STREQ(error.what(), "block 0: variable \"x\": data type COMPLEX64 is not supported");
}

TEST(ProgramCodec, NamesTheAttributeOfATypeItDoesNotSupport) {
  const Bytes one = IntField(1, 2) + IntField(3, 7);  // the long 7
  for (const auto& [type, field, name] :
       {std::tuple{16, 20, "SCALAR"}, std::tuple{17, 21, "SCALARS"}}) {
    const Error error =
        ErrorOf(RootWithOp(BytesField(3, "f") + Attr("numbers", type, BytesField(field, one))));
    EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
    EXPECT_EQ(error.what(), StrCat("block 0, op #0 \"f\": attribute \"numbers\" is of type ", name,
                                   ", which is not supported"));
  }
}

// PaddlePaddle 2.6 writes the values of set_value as scalars, each of a type of its own.
Bytes SetValueBytes(const Bytes& scalars) {
  return RootWithOp(BytesField(3, "set_value") + Attr("values", 17, scalars));
}

TEST(ProgramCodec, ReadsScalarsAsDoubles) {
  const auto scalar = [](int type, const Bytes& value) {
    return BytesField(21, IntField(1, type) + value);
  };
  const Bytes half = Tag(4, 1) + Bytes("\0\0\0\0\0\0\xe0\x3f", 8);
  const auto program = ParseProgram(
      SetValueBytes(scalar(1, IntField(2, 1)) + scalar(2, IntField(3, 7)) + scalar(3, half)));
  const Attribute& values = program->root()->ops().at(0)->attrs.at("values");
  EXPECT_EQ(std::get<std::vector<double>>(values), (std::vector<double>{1, 7, 0.5}));
  // They are written as doubles are, but as scalars.
  const Bytes written = SerializeProgram(*program);
  EXPECT_NE(written.find(scalar(3, half)), Bytes::npos);
  EXPECT_TRUE(*ParseProgram(written) == *program);
  const auto message = [&](const Bytes& bad) {
    return std::string(ErrorOf(SetValueBytes(bad)).what());
  };
  EXPECT_NE(message(scalar(2, IntField(3, (int64_t{1} << 53) + 1))).find("9007199254740993"),
            std::string::npos);
  EXPECT_NE(message(scalar(3, "")).find("FLOAT64 without a value"), std::string::npos);
  EXPECT_NE(message(scalar(4, "")).find("COMPLEX128, which is not supported"), std::string::npos);
}

// Whatever the bytes are: a program, which can be saved again, or an Error.
void ExpectProgramOrError(const Bytes& bytes) {
  try {
    const auto program = ParseProgram(bytes);
    EXPECT_TRUE(*ParseProgram(SerializeProgram(*program)) == *program);
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::kDataLoss || error.code() == ErrorCode::kUnimplemented)
        << error.what();
  }
}

TEST(ProgramCodec, SurvivesTruncationAtEachLength) {
  const Bytes bytes = GoldenBytes();
  for (size_t length = 0; length < bytes.size(); ++length) {
    ExpectProgramOrError(bytes.substr(0, length));
  }
}

TEST(ProgramCodec, SurvivesEveryValueOfEachByte) {
  const Bytes bytes = GoldenBytes();
  for (size_t position = 0; position < bytes.size(); ++position) {
    Bytes corrupted = bytes;
    for (int value = 0; value < 256; ++value) {
      corrupted[position] = static_cast<char>(value);
      ExpectProgramOrError(corrupted);
    }
  }
}

TEST(ProgramCodec, SurvivesRandomCorruption) {
  std::mt19937 random(1);
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Bytes bytes = SerializeProgram(*RandomProgram(seed, {.storable = true}));
    for (int flips = 0; flips < 4; ++flips) {
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << (random() % 8));
      ExpectProgramOrError(bytes);
    }
  }
}

TEST(TensorDescCodec, WritesTheBytesOfFluid) {
  // float32, [2, -1]; the dims aren't packed.
  const Bytes expected("\x08\x05\x10\x02\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 15);
  EXPECT_EQ(SerializeTensorDesc(DType::kFloat32, {2, -1}), expected);
}

TEST(TensorDescCodec, RoundTrips) {
  for (DType dtype : {DType::kBool, DType::kInt64, DType::kBFloat16}) {
    for (const std::vector<int64_t>& dims :
         {std::vector<int64_t>{}, {0}, {3, 1, 1 << 20}, {int64_t{1} << 62}}) {
      DType parsed_dtype = DType::kInt8;
      std::vector<int64_t> parsed_dims = {9, 9};
      ParseTensorDesc(SerializeTensorDesc(dtype, dims), &parsed_dtype, &parsed_dims);
      EXPECT_EQ(parsed_dtype, dtype);
      EXPECT_EQ(parsed_dims, dims);
    }
  }
}

TEST(TensorDescCodec, RefusesWhatIsNone) {
  DType dtype = DType::kInt8;
  std::vector<int64_t> dims;
  const auto message = [&](const Bytes& bytes, ErrorCode code) {
    return ErrorText(code, [&] { ParseTensorDesc(bytes, &dtype, &dims); });
  };
  EXPECT_EQ(message("", ErrorCode::kDataLoss),
            "the TensorDesc lacks required fields, or has unknown enumerators in them: data_type");
  EXPECT_EQ(message("\x08", ErrorCode::kDataLoss), "the 1 bytes are no TensorDesc");
  EXPECT_EQ(message(IntField(1, 99), ErrorCode::kDataLoss),
            "the TensorDesc lacks required fields, or has unknown enumerators in them: data_type");
  EXPECT_EQ(message(IntField(1, 23), ErrorCode::kUnimplemented),
            "data type COMPLEX64 is not supported");
  EXPECT_EQ(InvalidArgumentText([] { SerializeTensorDesc(static_cast<DType>(23), {}); }),
            "unknown dtype 23");
}

}  // namespace
}  // namespace skiff
