#include "framework/ir/text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "framework/base/error.h"
#include "tests/framework/ir/random_program.h"
#include "tests/harness/error_text.h"
#include "tests/harness/foreign_locale.h"

namespace skiff {
namespace {

std::unique_ptr<Program> ProgramWithOp(Op op) {
  auto program = std::make_unique<Program>();
  program->root()->AppendOp(std::move(op));
  return program;
}

// What becomes of an attribute that is printed and parsed.
Attribute ThroughText(const Attribute& attribute) {
  Op op("f");
  op.SetAttr("a", attribute);
  const auto parsed = ParseProgramText(PrintProgram(*ProgramWithOp(op)));
  return parsed->root()->ops().at(0)->attrs.at("a");
}

std::string AttributeText(const Attribute& attribute) {
  Op op("f");
  op.SetAttr("a", attribute);
  const std::string text = PrintOp(op);
  return text.substr(std::string("{} = f() {a = ").size(), text.size() - 15);
}

Attribute ParseAttribute(const std::string& value) {
  const auto program = ParseProgramText("program{block 0{{}=f(){a=" + value + "}}}");
  return program->root()->ops().at(0)->attrs.at("a");
}

std::string MessageOf(const std::string& text) {
  SCOPED_TRACE(text);
  return InvalidArgumentText([&] { ParseProgramText(text); });
}

constexpr const char* kSample = R"(program seed=7 version=2006002 {
  op_version relu = 1
  block 0 {
    var "x" float32 [-1, 784] lod=1 stop_gradient check_feed
    param "w" float32 [784, 10] persistable not_trainable learning_rate_factor=0.5
    var "steps" step_scopes float32 [] {layout = "NCHW"}
    var "y" float32 [-1, 10]
    {Out: ["y"]} = mul(X: ["x"], Y: ["w"]) {scale = 0.5, x_num_col_dims = 1}
    {} = while(X: ["y", "w"], Condition: []) target {sub_block = block 1}
  }
  block 1 parent=0 forward=0 {
  }
}
)";

TEST(ProgramText, PrintsWhatItParses) {
  EXPECT_EQ(PrintProgram(*ParseProgramText(kSample)), kSample);
}

TEST(ProgramText, ReadsEachField) {
  const auto program = ParseProgramText(kSample);
  EXPECT_EQ(program->seed, 7u);
  EXPECT_EQ(program->version, 2006002);
  ASSERT_EQ(program->op_versions.size(), 1u);
  EXPECT_EQ(program->op_versions[0], (std::pair<std::string, int32_t>("relu", 1)));
  const Var expected_x{.name = "x",
                       .dims = {-1, 784},
                       .lod_level = 1,
                       .stop_gradient = true,
                       .need_check_feed = true};
  EXPECT_TRUE(*program->root()->GetVar("x") == expected_x);
  const Var expected_w{.name = "w",
                       .dims = {784, 10},
                       .persistable = true,
                       .is_parameter = true,
                       .learning_rate_factor = 0.5f,
                       .trainable = false};
  EXPECT_TRUE(*program->root()->GetVar("w") == expected_w);
  EXPECT_EQ(program->root()->GetVar("steps")->kind, VarKind::kStepScopes);
  const Op& loop = *program->root()->ops()[1];
  EXPECT_TRUE(loop.is_target);
  EXPECT_EQ(loop.Attr<BlockIndex>("sub_block").value, 1);
  EXPECT_EQ(loop.inputs.size(), 2u);
  EXPECT_EQ(program->block(1)->parent_index(), 0);
  EXPECT_EQ(program->block(1)->forward_block_index, 0);
}

TEST(ProgramText, NeedsNoLineBreaksNorQuotes) {
  const auto terse = ParseProgramText(
      "program{block 0{var x@GRAD int64[2]persistable{a=1}{}=f(X:[x@GRAD]){a=1}}}");
  const auto spacious = ParseProgramText(R"(
program {
  block 0 {
    var "x@GRAD" lod_tensor int64 [2] persistable {"a" = int 1}
    {} = "f"("X": ["x@GRAD"]) {"a" = 1}
  }
})");
  EXPECT_TRUE(*terse == *spacious);
}

TEST(ProgramText, RoundTripsRandomPrograms) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const auto program = RandomProgram(seed);
    const std::string text = PrintProgram(*program);
    const auto parsed = ParseProgramText(text);
    ASSERT_TRUE(*parsed == *program) << "seed " << seed << "\n" << text;
    EXPECT_EQ(parsed->seed, program->seed);
    EXPECT_EQ(parsed->version, program->version);
    EXPECT_EQ(parsed->op_versions, program->op_versions);
  }
}

TEST(ProgramText, RoundTripsEveryAttributeType) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<Attribute> attributes = {
      int32_t{-5},
      0.1f,
      std::string("text"),
      std::vector<int32_t>{1, -2},
      std::vector<float>{1.0f, -inf},
      std::vector<std::string>{"a", ""},
      true,
      std::vector<bool>{true, false},
      BlockIndex{-1},
      int64_t{1} << 40,
      std::vector<BlockIndex>{{1}, {2}},
      std::vector<int64_t>{std::numeric_limits<int64_t>::min()},
      std::vector<double>{0.1, 1e300},
      VarName{"x"},
      std::vector<VarName>{{"x"}, {"y z"}},
      0.1,
  };
  ASSERT_EQ(attributes.size(), std::variant_size_v<AttributeVariant>);
  for (size_t i = 0; i < attributes.size(); ++i) {
    ASSERT_EQ(attributes[i].index(), i);
    EXPECT_TRUE(SameAttribute(ThroughText(attributes[i]), attributes[i])) << i;
  }
}

TEST(ProgramText, KeepsTheTypeOfEmptyLists) {
  EXPECT_EQ(AttributeText(std::vector<int32_t>{}), "ints []");
  for (const Attribute& attribute :
       {Attribute(std::vector<int32_t>{}), Attribute(std::vector<float>{}),
        Attribute(std::vector<std::string>{}), Attribute(std::vector<bool>{}),
        Attribute(std::vector<BlockIndex>{}), Attribute(std::vector<int64_t>{}),
        Attribute(std::vector<double>{}), Attribute(std::vector<VarName>{})}) {
    EXPECT_TRUE(SameAttribute(ThroughText(attribute), attribute)) << attribute.index();
  }
}

TEST(ProgramText, PrintsAttributesForPeople) {
  EXPECT_EQ(AttributeText(1), "1");
  EXPECT_EQ(AttributeText(1.0f), "1.0");
  EXPECT_EQ(AttributeText(0.1f), "0.1");
  EXPECT_EQ(AttributeText(-0.0f), "-0.0");
  EXPECT_EQ(AttributeText(1e30f), "1e+30");
  EXPECT_EQ(AttributeText(0.1), "double 0.1");
  EXPECT_EQ(AttributeText(int64_t{3}), "long 3");
  EXPECT_EQ(AttributeText(VarName{"x"}), "var \"x\"");
  EXPECT_EQ(AttributeText(std::vector<bool>{true, false}), "bools [true, false]");
}

TEST(ProgramText, ReadsNamedTypesOfPlainValuesToo) {
  EXPECT_TRUE(SameAttribute(ParseAttribute("int 3"), int32_t{3}));
  EXPECT_TRUE(SameAttribute(ParseAttribute("float 3"), 3.0f));
  EXPECT_TRUE(SameAttribute(ParseAttribute("string \"s\""), std::string("s")));
  EXPECT_TRUE(SameAttribute(ParseAttribute("bool true"), true));
  EXPECT_TRUE(SameAttribute(ParseAttribute("double 3"), 3.0));
}

TEST(ProgramText, KeepsEveryBitOfFloatingPoint) {
  using Float = std::numeric_limits<float>;
  using Double = std::numeric_limits<double>;
  for (float value :
       {0.0f, -0.0f, 1.0f / 3, Float::min(), Float::max(), Float::lowest(), Float::denorm_min(),
        Float::infinity(), -Float::infinity(), Float::quiet_NaN(), -Float::quiet_NaN(),
        std::bit_cast<float>(uint32_t{0x7fc00001})}) {
    EXPECT_TRUE(SameAttribute(ThroughText(value), value)) << value;
  }
  for (double value :
       {0.0, -0.0, 1.0 / 3, Double::min(), Double::max(), Double::lowest(), Double::denorm_min(),
        Double::infinity(), -Double::infinity(), Double::quiet_NaN(), -Double::quiet_NaN(),
        std::bit_cast<double>(uint64_t{0x7ff8000000000001})}) {
    EXPECT_TRUE(SameAttribute(ThroughText(value), value)) << value;
  }
}

TEST(ProgramText, EscapesStringsToPrintableAscii) {
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) all_bytes += static_cast<char>(byte);
  const std::string text = AttributeText(all_bytes);
  for (char c : text) EXPECT_TRUE(c >= ' ' && c <= '~');
  EXPECT_TRUE(SameAttribute(ThroughText(all_bytes), all_bytes));
  EXPECT_EQ(AttributeText(std::string("a\"b\\c\nd\te\rf\x01\xc3\xa9")),
            R"("a\"b\\c\nd\te\rf\x01\xc3\xa9")");
}

TEST(ProgramText, QuotesNamesThatNeedIt) {
  Op op("my op");
  op.SetInput("a:b", {"x"}).SetInput("", {"y"}).SetAttr("", 1).SetAttr("0", 2);
  EXPECT_EQ(PrintOp(op), R"({} = "my op"("a:b": ["x"], "": ["y"]) {"" = 1, "0" = 2})");
  const auto program = ProgramWithOp(op);
  EXPECT_TRUE(*ParseProgramText(PrintProgram(*program)) == *program);
}

TEST(ProgramText, TellsAnOpAfterAnOpFromItsAttributes) {
  const auto program =
      ParseProgramText("program { block 0 { {} = a() {} = b() {} {O: [x]} = c() } }");
  ASSERT_EQ(program->root()->ops().size(), 3u);
  EXPECT_TRUE(program->root()->ops()[1]->attrs.empty());
}

TEST(ProgramText, ShowsWhereAnOpComesFromInAComment) {
  Op op("f");
  op.site = {"models/net.cc", 12};
  EXPECT_EQ(PrintOp(op), "{} = f()  # models/net.cc:12");
  op.site.file = "a\n{} = g()";
  const auto parsed = ParseProgramText(PrintProgram(*ProgramWithOp(op)));
  EXPECT_EQ(parsed->root()->ops().size(), 1u);
}

TEST(ProgramText, SkipsComments) {
  const auto program = ParseProgramText(
      "# before\nprogram { # {\n block 0 {\n # }\n {} = f(){a = \"# no comment\"} #\n}\n} # after");
  EXPECT_EQ(program->root()->ops().at(0)->Attr<std::string>("a"), "# no comment");
}

// A program of 300,000 slots takes as long as 300,000 programs of one. (With a search among the
// slots before, this would outlast the test's time.)
TEST(ProgramText, MayHaveAnyNumberOfSlots) {
  constexpr int kSlots = 300000;
  std::string text = "program { block 0 { {} = op(";
  for (int i = 0; i < kSlots; ++i)
    text += StrCat(i == 0 ? "" : ", ", "slot_with_a_name_", i, ": []");
  const auto program = ParseProgramText(text + ") } }");
  EXPECT_EQ(program->root()->ops()[0]->inputs.size(), size_t{kSlots});
}

INSTANTIATE_TEST_SUITE_P(, InForeignLocale, ForeignLocales(), ForeignLocaleName);

TEST_P(InForeignLocale, ProgramTextStaysTheSame) {
  constexpr const char* kText = R"(program seed=1234567 version=2006002 {
  op_version relu = 1000
  block 0 {
    param "w" float32 [123456, 784] persistable learning_rate_factor=0.5
    {Out: ["w"]} = scale(X: ["w"]) {axis = 1000, scale = 1234.5, shape = longs [1000000], sizes = ints [1000, -2000], step = double 0.125}
  }
}
)";
  const auto program = ParseProgramText(kText);
  EXPECT_EQ(PrintProgram(*program), kText);
  EXPECT_EQ(program->root()->ops()[0]->Attr<float>("scale"), 1234.5f);
}

TEST(ProgramText, GivesOpsTheirIdsInOrder) {
  const auto program = ParseProgramText("program { block 0 { {} = a() {} = b() } }");
  EXPECT_EQ(program->root()->ops()[1]->id, 1);
}

TEST(ProgramTextErrors, CarryLineAndColumn) {
  EXPECT_EQ(MessageOf("program {\n  block 0 {\n    vax x\n"),
            "line 3, column 5: expected a variable (\"var\" or \"param\"), an op ('{') or '}', "
            "found \"vax x\"");
  EXPECT_EQ(MessageOf("program {\n block 1 {} }"),
            "line 2, column 8: blocks must be in order: expected block 0");
  EXPECT_EQ(MessageOf("program {"),
            "line 1, column 10: expected \"block\", found the end of the text");
}

TEST(ProgramTextErrors, SayWhatWasExpected) {
  const auto contains = [](const std::string& text, const std::string& part) {
    const std::string message = MessageOf(text);
    return message.find(part) != std::string::npos ? std::string() : message;
  };
  const auto in_block = [](const std::string& text) {
    return "program { block 0 { " + text + " } }";
  };
  const auto with_attr = [&](const std::string& value) {
    return in_block("{} = f() {a = " + value + "}");
  };
  EXPECT_EQ(contains("", "\"program\""), "");
  EXPECT_EQ(contains("program {}", "no block"), "");
  EXPECT_EQ(contains("program sed=1 {}", "\"seed\", \"version\""), "");
  EXPECT_EQ(contains("program seed=-1 {}", "a seed in [0, 18446744073709551615]"), "");
  EXPECT_EQ(contains("program { block 0 {} block 1 parent=1 {} }", "can't have the parent 1"), "");
  EXPECT_EQ(contains("program { block 0 forward=1 {} }", "can't have the forward block 1"), "");
  EXPECT_EQ(contains("program { block 0 forward=-2 {} }", "can't have the forward block -2"), "");
  EXPECT_EQ(contains("program { block 0 {} } x", "the end of the text"), "");
  EXPECT_EQ(contains("program { block 0 parent=0 {} }", "can't have the parent 0"), "");
  EXPECT_EQ(contains(in_block("var x float [1]"), "unknown dtype \"float\""), "");
  EXPECT_EQ(contains(in_block("var \"\" float32 []"), "empty"), "");
  EXPECT_EQ(contains(in_block("var x float32 [] var x float32 []"), "in the block already"), "");
  EXPECT_EQ(contains(in_block("var x float32 [1,]"), "an integer"), "");
  EXPECT_EQ(contains(in_block("{} = f(X: [x)"), "']'"), "");
  EXPECT_EQ(contains(in_block("{} = f(X: [a], X: [b])"), "slot \"X\" is there twice"), "");
  EXPECT_EQ(contains(in_block("{} = f() {a = 1, a = 2}"), "attribute \"a\" is there twice"), "");
  EXPECT_EQ(contains(with_attr("2147483648"), "an integer in [-2147483648, 2147483647]"), "");
  EXPECT_EQ(contains(with_attr("1L"), "an integer"), "");
  EXPECT_EQ(contains(with_attr("1e99"), "range"), "");
  EXPECT_EQ(contains(with_attr("1.5.5"), "a float"), "");
  EXPECT_EQ(contains(with_attr("-infinity"), "an integer"), "");
  EXPECT_EQ(contains(with_attr("nan(0x7f800000)"), "bits of a NaN"), "");
  EXPECT_EQ(contains(with_attr("nan(0x7fc000001)"), "bits of a NaN"), "");
  EXPECT_EQ(contains(with_attr("nan(7)"), "bits of a NaN"), "");
  EXPECT_EQ(contains(with_attr("number 1"), "no attribute type \"number\""), "");
  EXPECT_EQ(contains(with_attr("[1]"), "the name of its type"), "");
  EXPECT_EQ(contains(with_attr("ints [[1]]"), "an integer"), "");
  EXPECT_EQ(contains(with_attr("bool 1"), "true or false"), "");
  EXPECT_EQ(contains(with_attr("\"a"), "no closing quote"), "");
  EXPECT_EQ(contains(with_attr("\"a\n\""), "no closing quote in its line"), "");
  EXPECT_EQ(contains(with_attr("\"\\q\""), "unknown escape"), "");
  EXPECT_EQ(contains(with_attr("\"\\x1\""), "two hexadecimal digits"), "");
  EXPECT_EQ(contains(with_attr("\"\\x-1\""), "two hexadecimal digits"), "");
}

void ExpectProgramOrError(const std::string& text) {
  try {
    const auto program = ParseProgramText(text);
    EXPECT_TRUE(*ParseProgramText(PrintProgram(*program)) == *program);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    EXPECT_TRUE(std::string(error.what()).starts_with("line ")) << error.what();
  }
}

TEST(ProgramTextErrors, SurvivesTruncationAtEachLength) {
  const std::string text = kSample;
  for (size_t length = 0; length < text.size(); ++length) {
    ExpectProgramOrError(text.substr(0, length));
  }
}

TEST(ProgramTextErrors, SurvivesEveryValueOfEachByte) {
  const std::string text = kSample;
  for (size_t position = 0; position < text.size(); ++position) {
    std::string corrupted = text;
    for (int value = 0; value < 256; ++value) {
      corrupted[position] = static_cast<char>(value);
      ExpectProgramOrError(corrupted);
    }
  }
}

TEST(ProgramTextErrors, SurvivesRandomSplices) {
  std::mt19937 random(1);
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::string text = PrintProgram(*RandomProgram(seed));
    for (int splice = 0; splice < 3; ++splice) {
      const std::string piece = text.substr(random() % text.size(), random() % 30);
      text.insert(random() % text.size(), piece);
      ExpectProgramOrError(text);
    }
  }
}

TEST(ProgramTextErrors, DoesNotRecurseIntoNesting) {
  for (char open : {'{', '[', '(', '"', '\\'}) {
    const std::string deep(1 << 20, open);
    EXPECT_FALSE(MessageOf(deep).empty());
    EXPECT_FALSE(MessageOf("program { block 0 { " + deep).empty());
    EXPECT_FALSE(MessageOf("program { block 0 { {} = f() {a = ints " + deep).empty());
  }
}

}  // namespace
}  // namespace skiff
