// ParseProgramText, with one function per rule of the text format. Values nest no deeper than a
// list, so the depth of calls is bounded for any text.
#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <optional>
#include <unordered_set>

#include "framework/base/error.h"
#include "framework/ir/text.h"
#include "framework/ir/text_escape.h"

namespace skiff {
namespace {

// A position in the text, and functions that read tokens there.
class TextScanner {
 public:
  explicit TextScanner(std::string_view text) : text_(text) { SkipSpace(); }

  bool AtEnd() const { return position_ == text_.size(); }
  size_t position() const { return position_; }
  // '\0' at the end.
  char Peek() const { return AtEnd() ? '\0' : text_[position_]; }

  bool TryPunctuation(char character) {
    if (AtEnd() || Peek() != character) return false;
    ++position_;
    SkipSpace();
    return true;
  }

  void Punctuation(char character) {
    if (!TryPunctuation(character)) ThrowExpected(std::string("'") + character + "'");
  }

  // Returns the next bare name without consuming it; empty if there is none.
  std::string_view PeekWord() const {
    size_t end = position_;
    if (AtEnd() || !IsBareNameStart(Peek())) return {};
    while (end < text_.size() && IsBareNamePart(text_[end])) ++end;
    return text_.substr(position_, end - position_);
  }

  bool TryWord(std::string_view word) {
    if (PeekWord() != word) return false;
    Advance(word.size());
    return true;
  }

  void Word(std::string_view word) {
    if (!TryWord(word)) ThrowExpected(Quote(word));
  }

  std::string_view AnyWord(std::string_view what) {
    const std::string_view word = PeekWord();
    if (word.empty()) ThrowExpected(what);
    Advance(word.size());
    return word;
  }

  // Reads a quoted or bare name.
  std::string Name(std::string_view what) {
    return Peek() == '"' ? String(what) : std::string(AnyWord(what));
  }

  std::string String(std::string_view what) {
    if (Peek() != '"') ThrowExpected(what);
    const size_t start = position_++;
    std::string value;
    while (!AtEnd() && Peek() != '"') {
      if (Peek() == '\n') ThrowAt(start, "the string has no closing quote in its line");
      value += Peek() == '\\' ? Escape() : text_[position_++];
    }
    if (AtEnd()) ThrowAt(start, "the string has no closing quote");
    Advance(1);
    return value;
  }

  // Returns the characters of the next number, or of the word for a special value.
  std::string_view PeekNumber() const {
    size_t end = position_;
    while (end < text_.size() && IsNumberPart(text_[end])) ++end;
    return text_.substr(position_, end - position_);
  }

  template <typename Integer>
  Integer Number(std::string_view what) {
    const std::string_view digits = PeekNumber();
    Integer value{};
    if (!ReadWhole(digits, &value)) {
      ThrowExpected(StrCat(what, " in [", +std::numeric_limits<Integer>::min(), ", ",
                           +std::numeric_limits<Integer>::max(), "]"));
    }
    Advance(digits.size());
    return value;
  }

  template <typename Float, typename Bits>
  Float FloatingPoint(std::string_view what) {
    const std::string_view digits = PeekNumber();
    if (digits == "nan") return Nan<Float, Bits>();
    if (digits == "inf" || digits == "-inf") {
      Advance(digits.size());
      const Float infinity = std::numeric_limits<Float>::infinity();
      return digits == "inf" ? infinity : -infinity;
    }
    Float value{};
    // from_chars accepts more spellings of the special values than the text format.
    const bool is_number = digits.find_first_of("0123456789") != std::string_view::npos;
    if (!is_number || !ReadWhole(digits, &value)) {
      ThrowExpected(StrCat(what, " within the range of its type"));
    }
    Advance(digits.size());
    return value;
  }

  [[noreturn]] void ThrowExpected(std::string_view what) const {
    ThrowAt(position_, StrCat("expected ", what, ", found ", Found()));
  }

  // Lines are counted only for a message, so that scanning doesn't pay for it.
  [[noreturn]] void ThrowAt(size_t position, std::string_view message) const {
    size_t line = 1;
    size_t line_start = 0;
    for (size_t i = 0; i < position; ++i) {
      if (text_[i] != '\n') continue;
      ++line;
      line_start = i + 1;
    }
    Throw(ErrorCode::kInvalidArgument, "line ", line, ", column ", position - line_start + 1, ": ",
          message);
  }

 private:
  // Also letters, for exponents, hexadecimal digits, inf and nan: a token such as 12ab is read
  // whole and then refused, instead of being split into a number and a word.
  static bool IsNumberPart(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '+' || c == '-';
  }

  template <typename T>
  static bool ReadWhole(std::string_view digits, T* value) {
    const char* end = digits.data() + digits.size();
    const auto [stop, status] = std::from_chars(digits.data(), end, *value);
    return status == std::errc() && stop == end;
  }

  template <typename Float, typename Bits>
  Float Nan() {
    const size_t start = position_;
    Advance(3);
    if (!TryPunctuation('(')) return std::numeric_limits<Float>::quiet_NaN();
    const std::string_view digits = PeekNumber();
    Bits bits{};
    const char* end = digits.data() + digits.size();
    const bool is_hex = digits.starts_with("0x");
    const auto [stop, status] = std::from_chars(digits.data() + (is_hex ? 2 : 0), end, bits, 16);
    const auto value = std::bit_cast<Float>(bits);
    if (!is_hex || status != std::errc() || stop != end || value == value) {
      ThrowAt(start, "expected the bits of a NaN as in nan(0x7fc00001)");
    }
    Advance(digits.size());
    Punctuation(')');
    return value;
  }

  char Escape() {
    const size_t start = position_++;
    const char kind = Peek();
    ++position_;
    switch (kind) {
      case '"':
      case '\\':
        return kind;
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'x':
        return HexByte(start);
      default:
        ThrowAt(start, "unknown escape, expected one of \\\" \\\\ \\n \\t \\r \\xHH");
    }
  }

  char HexByte(size_t start) {
    const std::string_view digits = text_.substr(position_, 2);
    unsigned char byte = 0;
    const char* end = digits.data() + digits.size();
    const auto [stop, status] = std::from_chars(digits.data(), end, byte, 16);
    if (digits.size() != 2 || status != std::errc() || stop != end) {
      ThrowAt(start, "expected two hexadecimal digits after \\x");
    }
    position_ += 2;
    return static_cast<char>(byte);
  }

  void Advance(size_t characters) {
    position_ += characters;
    SkipSpace();
  }

  void SkipSpace() {
    while (!AtEnd()) {
      const char c = Peek();
      if (c == '#') {
        position_ = std::min(text_.find('\n', position_), text_.size());
      } else if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
        ++position_;
      } else {
        return;
      }
    }
  }

  std::string Found() const {
    if (AtEnd()) return "the end of the text";
    constexpr size_t kShownCharacters = 20;
    const std::string_view rest = text_.substr(position_, kShownCharacters);
    return Quote(rest.substr(0, rest.find_first_of("\r\n")));
  }

  std::string_view text_;
  size_t position_ = 0;
};

class ProgramParser {
 public:
  explicit ProgramParser(std::string_view text) : scan_(text) {}

  std::unique_ptr<Program> Parse() {
    program_ = std::make_unique<Program>();
    scan_.Word("program");
    Settings();
    scan_.Punctuation('{');
    while (scan_.TryWord("op_version")) OpVersion();
    while (!scan_.TryPunctuation('}')) NextBlock();
    if (next_block_ == 0) scan_.ThrowAt(0, "the program has no block, expected one at least");
    CheckForwardBlocks();
    if (!scan_.AtEnd()) scan_.ThrowExpected("the end of the text");
    return std::move(program_);
  }

 private:
  void Settings() {
    while (scan_.Peek() != '{') {
      if (scan_.TryWord("seed")) {
        scan_.Punctuation('=');
        program_->seed = scan_.Number<uint64_t>("a seed");
      } else if (scan_.TryWord("version")) {
        scan_.Punctuation('=');
        program_->version = scan_.Number<int64_t>("a version");
      } else {
        scan_.ThrowExpected("\"seed\", \"version\" or '{'");
      }
    }
  }

  void OpVersion() {
    std::string op = scan_.Name("an op type");
    scan_.Punctuation('=');
    program_->op_versions.emplace_back(std::move(op), scan_.Number<int32_t>("a version"));
  }

  void NextBlock() {
    scan_.Word("block");
    const size_t start = scan_.position();
    if (scan_.Number<int32_t>("a block index") != next_block_) {
      scan_.ThrowAt(start, StrCat("blocks must be in order: expected block ", next_block_));
    }
    Block* block = CreateBlock();
    scan_.Punctuation('{');
    while (!scan_.TryPunctuation('}')) VarOrOp(block);
  }

  // Reads parent=N forward=N, of which either may be missing.
  Block* CreateBlock() {
    int32_t parent = -1;
    if (scan_.TryWord("parent")) {
      scan_.Punctuation('=');
      parent = ParentIndex();
    }
    Block* block = next_block_ == 0 ? program_->root() : program_->AppendBlock(parent);
    ++next_block_;
    if (scan_.TryWord("forward")) {
      scan_.Punctuation('=');
      forward_positions_.emplace_back(scan_.position(), block);
      block->forward_block_index = scan_.Number<int32_t>("a block index");
    }
    return block;
  }

  // A forward block may come after the block that names it, so this check must wait for all blocks.
  void CheckForwardBlocks() const {
    for (const auto& [position, block] : forward_positions_) {
      const int32_t forward = block->forward_block_index;
      if (forward >= -1 && forward < next_block_) continue;
      scan_.ThrowAt(position, StrCat("block ", block->index(), " can't have the forward block ",
                                     forward, ": expected one in [-1, ", next_block_, ")"));
    }
  }

  int32_t ParentIndex() {
    const size_t start = scan_.position();
    const auto parent = scan_.Number<int32_t>("a block index");
    if (parent < -1 || parent >= next_block_) {
      scan_.ThrowAt(start, StrCat("block ", next_block_, " can't have the parent ", parent,
                                  ": expected one in [-1, ", next_block_, ")"));
    }
    return parent;
  }

  void VarOrOp(Block* block) {
    if (scan_.Peek() == '{') {
      block->AppendOp(ParseOp());
      return;
    }
    const size_t start = scan_.position();
    const bool is_parameter = scan_.TryWord("param");
    if (!is_parameter && !scan_.TryWord("var")) {
      scan_.ThrowExpected("a variable (\"var\" or \"param\"), an op ('{') or '}'");
    }
    Var var = ParseVar();
    var.is_parameter = is_parameter;
    if (var.name.empty()) scan_.ThrowAt(start, "a variable needs a name, found an empty one");
    if (block->FindLocalVar(var.name) != nullptr) {
      scan_.ThrowAt(start, StrCat("variable ", Quote(var.name), " is in the block already"));
    }
    block->CreateVar(std::move(var));
  }

  // `{` may begin the attributes of the variable or the next op. Only looking ahead tells
  // (IsOpNext).
  Var ParseVar() {
    Var var;
    var.name = scan_.Name("the name of a variable");
    var.kind = OptionalKind();
    var.dtype = ParseDType();
    var.dims = List<int64_t>();
    while (TryVarMark(&var)) {
    }
    if (scan_.Peek() == '{' && !IsOpNext()) var.attrs = Attributes();
    return var;
  }

  // A kind is a bare word like a dtype, and most variables have none: if the word isn't a kind, it
  // must be the dtype.
  VarKind OptionalKind() {
    try {
      const VarKind kind = VarKindFromName(scan_.PeekWord());
      scan_.AnyWord("a kind");
      return kind;
    } catch (const Error&) {
      return VarKind::kLoDTensor;
    }
  }

  DType ParseDType() {
    const size_t start = scan_.position();
    const std::string_view word = scan_.AnyWord("a dtype");
    try {
      return DTypeFromName(word);
    } catch (const Error& error) {
      scan_.ThrowAt(start, error.what());
    }
  }

  // Marks may come in any order, though the printer has one.
  bool TryVarMark(Var* var) {
    if (scan_.TryWord("lod")) {
      scan_.Punctuation('=');
      var->lod_level = scan_.Number<int32_t>("a LoD level");
    } else if (scan_.TryWord("persistable")) {
      var->persistable = true;
    } else if (scan_.TryWord("stop_gradient")) {
      var->stop_gradient = true;
    } else if (scan_.TryWord("check_feed")) {
      var->need_check_feed = true;
    } else if (scan_.TryWord("not_trainable")) {
      var->trainable = false;
    } else if (scan_.TryWord("learning_rate_factor")) {
      scan_.Punctuation('=');
      var->learning_rate_factor = Value<float>();
    } else {
      return false;
    }
    return true;
  }

  // Returns whether a '{' starts the outputs of an op, `{}` or `{Out: …`, rather than attributes,
  // `{a = …`.
  bool IsOpNext() const {
    // A copy of the scanner is a position in the text: looking ahead costs nothing more.
    TextScanner ahead = scan_;
    ahead.Punctuation('{');
    if (ahead.TryPunctuation('}')) return ahead.Peek() == '=';
    ahead.Name("a name");
    return ahead.Peek() == ':';
  }

  Op ParseOp() {
    Op op;
    scan_.Punctuation('{');
    op.outputs = ParseSlots('}');
    scan_.Punctuation('=');
    op.type = scan_.Name("an op type");
    scan_.Punctuation('(');
    op.inputs = ParseSlots(')');
    op.is_target = scan_.TryWord("target");
    if (scan_.Peek() == '{' && !IsOpNext()) op.attrs = Attributes();
    return op;
  }

  Slots ParseSlots(char close) {
    Slots slots;
    if (scan_.TryPunctuation(close)) return slots;
    std::unordered_set<std::string> seen;  // a text may have any number
    do {
      const size_t start = scan_.position();
      std::string slot = scan_.Name("the name of a slot");
      if (!seen.insert(slot).second) {
        scan_.ThrowAt(start, StrCat("slot ", Quote(slot), " is there twice"));
      }
      scan_.Punctuation(':');
      slots.push_back({std::move(slot), Names()});
    } while (scan_.TryPunctuation(','));
    scan_.Punctuation(close);
    return slots;
  }

  std::vector<std::string> Names() {
    std::vector<std::string> names;
    scan_.Punctuation('[');
    if (scan_.TryPunctuation(']')) return names;
    do {
      names.push_back(scan_.Name("the name of a variable"));
    } while (scan_.TryPunctuation(','));
    scan_.Punctuation(']');
    return names;
  }

  AttributeMap Attributes() {
    AttributeMap attrs;
    scan_.Punctuation('{');
    if (scan_.TryPunctuation('}')) return attrs;
    do {
      const size_t start = scan_.position();
      std::string name = scan_.Name("the name of an attribute");
      scan_.Punctuation('=');
      const bool added = attrs.emplace(name, AttributeValue()).second;
      if (!added) scan_.ThrowAt(start, StrCat("attribute ", Quote(name), " is there twice"));
    } while (scan_.TryPunctuation(','));
    scan_.Punctuation('}');
    return attrs;
  }

  Attribute AttributeValue() {
    const std::string_view word = scan_.PeekWord();
    if (word == "true" || word == "false") return Value<bool>();
    if (word == "inf" || word == "nan") return Value<float>();
    if (!word.empty()) return TypedValue();
    if (scan_.Peek() == '"') return Value<std::string>();
    const std::string_view number = scan_.PeekNumber();
    if (number.empty()) scan_.ThrowExpected("the value of an attribute, or the name of its type");
    const bool is_float = number == "-inf" || number.find_first_of(".eE") != number.npos;
    return is_float ? Attribute(Value<float>()) : Attribute(Value<int32_t>());
  }

  // Reads the name of a type, then a value.
  Attribute TypedValue() {
    const size_t start = scan_.position();
    const std::string_view type = scan_.AnyWord("the type of an attribute");
    std::optional<Attribute> value = ValueOfType(type, std::make_index_sequence<kAttrTypes>());
    if (!value) scan_.ThrowAt(start, StrCat("there is no attribute type ", Quote(type)));
    return *std::move(value);
  }

  // Tries the types one after the other at compile time, so that a type added to the variant needs
  // no line here.
  template <size_t... kTypes>
  std::optional<Attribute> ValueOfType(std::string_view type, std::index_sequence<kTypes...>) {
    std::optional<Attribute> value;
    (void)((AttrTypeName(static_cast<AttrType>(kTypes)) == type &&
            (value.emplace(std::in_place_index<kTypes>,
                           Value<std::variant_alternative_t<kTypes, AttributeVariant>>()),
             true)) ||
           ...);
    return value;
  }

  template <typename T>
  struct IsList : std::false_type {};
  template <typename T>
  struct IsList<std::vector<T>> : std::true_type {};

  template <typename T>
  T Value() {
    if constexpr (IsList<T>::value) {
      return List<typename T::value_type>();
    } else if constexpr (std::is_same_v<T, bool>) {
      return Bool();
    } else if constexpr (std::is_same_v<T, float>) {
      return scan_.FloatingPoint<float, uint32_t>("a float");
    } else if constexpr (std::is_same_v<T, double>) {
      return scan_.FloatingPoint<double, uint64_t>("a double");
    } else if constexpr (std::is_same_v<T, std::string>) {
      return scan_.String("a string in quotes");
    } else if constexpr (std::is_same_v<T, VarName>) {
      return VarName{scan_.Name("the name of a variable")};
    } else if constexpr (std::is_same_v<T, BlockIndex>) {
      return BlockIndex{scan_.Number<int32_t>("a block index")};
    } else {
      return scan_.Number<T>("an integer");
    }
  }

  bool Bool() {
    if (scan_.TryWord("true")) return true;
    if (!scan_.TryWord("false")) scan_.ThrowExpected("true or false");
    return false;
  }

  template <typename T>
  std::vector<T> List() {
    std::vector<T> values;
    scan_.Punctuation('[');
    if (scan_.TryPunctuation(']')) return values;
    do {
      values.push_back(Value<T>());
    } while (scan_.TryPunctuation(','));
    scan_.Punctuation(']');
    return values;
  }

  static constexpr size_t kAttrTypes = std::variant_size_v<AttributeVariant>;

  TextScanner scan_;
  std::unique_ptr<Program> program_;
  int32_t next_block_ = 0;
  std::vector<std::pair<size_t, const Block*>> forward_positions_;  // in the text
};

}  // namespace

std::unique_ptr<Program> ParseProgramText(std::string_view text) {
  return ProgramParser(text).Parse();
}

}  // namespace skiff
