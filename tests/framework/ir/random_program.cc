#include "tests/framework/ir/random_program.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <random>

#include "framework/base/error.h"

namespace skiff {
namespace {

constexpr std::array kKinds = {
    VarKind::kLoDTensor,  VarKind::kSelectedRows, VarKind::kFeedMinibatch,  VarKind::kFetchList,
    VarKind::kStepScopes, VarKind::kLoDRankTable, VarKind::kLoDTensorArray, VarKind::kPlaceList,
    VarKind::kReader,     VarKind::kRaw};
constexpr std::array kDTypes = {DType::kBool,    DType::kInt16,   DType::kInt32,   DType::kInt64,
                                DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kUint8,
                                DType::kInt8,    DType::kBFloat16};

class Generator {
 public:
  Generator(uint32_t seed, RandomProgramOptions options) : random_(seed), options_(options) {}

  std::unique_ptr<Program> Make() {
    auto program = std::make_unique<Program>();
    program->version = Below(2) ? 0 : 2006002;
    if (!options_.storable) program->seed = random_();
    for (int i = Below(3); i > 0; --i) program->op_versions.emplace_back(Text(), Below(5));
    block_count_ = 1 + Below(4);
    for (int i = 1; i < block_count_; ++i) program->AppendBlock(Below(i + 1) - 1);
    for (int i = 0; i < block_count_; ++i) FillBlock(program->block(i));
    return program;
  }

 private:
  int Below(int limit) { return static_cast<int>(random_() % static_cast<uint32_t>(limit)); }
  bool Coin() { return Below(2) == 0; }

  template <typename T>
  T Bits() {
    const uint64_t bits = (uint64_t{random_()} << 32) | random_();
    if constexpr (sizeof(T) == 4) {
      return std::bit_cast<T>(static_cast<uint32_t>(bits));
    } else {
      return std::bit_cast<T>(bits);
    }
  }

  // Values at the borders as often as any others.
  template <typename T>
  T Number() {
    using Limits = std::numeric_limits<T>;
    if (Coin()) return Bits<T>();
    const std::array<T, 8> special = {T{0},
                                      T{1},
                                      T(-1),
                                      Limits::min(),
                                      Limits::max(),
                                      Limits::lowest(),
                                      Limits::infinity(),
                                      Limits::quiet_NaN()};
    return special[static_cast<size_t>(Below(8))];
  }

  // Names as in real programs, or any bytes at all.
  std::string Text() {
    if (Coin()) return StrCat("fc_", Below(100), ".w_0");
    std::string text;
    for (int i = Below(8); i > 0; --i) text += static_cast<char>(Below(256));
    return text;
  }

  template <typename Make>
  auto ListOf(const Make& make) {
    std::vector<decltype(make())> values;
    for (int i = Below(4); i > 0; --i) values.push_back(make());
    return values;
  }

  BlockIndex AnyBlock() { return {Below(block_count_)}; }

  Attribute AnyAttribute() {
    switch (static_cast<AttrType>(Below(16))) {
      case AttrType::kInt:
        return Number<int32_t>();
      case AttrType::kFloat:
        return Number<float>();
      case AttrType::kString:
        return Text();
      case AttrType::kInts:
        return ListOf([this] { return Number<int32_t>(); });
      case AttrType::kFloats:
        return ListOf([this] { return Number<float>(); });
      case AttrType::kStrings:
        return ListOf([this] { return Text(); });
      case AttrType::kBool:
        return Coin();
      case AttrType::kBools:
        return ListOf([this] { return Coin(); });
      case AttrType::kBlock:
        return AnyBlock();
      case AttrType::kLong:
        return Number<int64_t>();
      case AttrType::kBlocks:
        return ListOf([this] { return AnyBlock(); });
      case AttrType::kLongs:
        return ListOf([this] { return Number<int64_t>(); });
      case AttrType::kDoubles:
        return ListOf([this] { return Number<double>(); });
      case AttrType::kVar:
        return VarName{Text()};
      case AttrType::kVars:
        return ListOf([this] { return VarName{Text()}; });
      case AttrType::kDouble:
        return Number<double>();
    }
    return 0;
  }

  Attribute StorableVarAttribute() {
    switch (Below(3)) {
      case 0:
        return Number<int32_t>();
      case 1:
        return Text();
      default:
        return ListOf([this] { return Number<int32_t>(); });
    }
  }

  Var AnyVar(int number) {
    Var var;
    var.name = StrCat(Text(), "#", number);
    var.kind = kKinds[static_cast<size_t>(Below(kKinds.size()))];
    var.dtype = kDTypes[static_cast<size_t>(Below(kDTypes.size()))];
    var.dims =
        ListOf([this] { return Coin() ? int64_t{-1} : std::max(int64_t{-1}, Number<int64_t>()); });
    const bool has_lod = !options_.storable || var.kind != VarKind::kSelectedRows;
    if (has_lod) var.lod_level = Below(3);
    var.persistable = Coin();
    var.is_parameter = Coin();
    var.stop_gradient = Coin();
    var.need_check_feed = Coin();
    for (int i = Below(3); i > 0; --i) {
      var.attrs[Text()] = options_.storable ? StorableVarAttribute() : AnyAttribute();
    }
    if (options_.storable) return var;
    var.trainable = Coin();
    var.learning_rate_factor = Number<float>();
    return var;
  }

  Slots AnySlots() {
    Slots slots;
    for (int i = Below(4); i > 0; --i) {
      slots.push_back({StrCat(Text(), i), ListOf([this] { return Text(); })});
    }
    return slots;
  }

  Op AnyOp() {
    Op op(Text());
    op.inputs = AnySlots();
    op.outputs = AnySlots();
    for (int i = Below(6); i > 0; --i) op.attrs[Text()] = AnyAttribute();
    op.is_target = Coin();
    if (Coin()) op.site = {Text(), Below(1000)};
    return op;
  }

  void FillBlock(Block* block) {
    block->forward_block_index = Below(block_count_ + 1) - 1;
    // A file can't say that a block is its own.
    if (block->forward_block_index == block->index()) block->forward_block_index = -1;
    for (int i = Below(5); i > 0; --i) block->CreateVar(AnyVar(i));
    for (int i = Below(6); i > 0; --i) block->AppendOp(AnyOp());
  }

  std::mt19937 random_;
  RandomProgramOptions options_;
  int block_count_ = 1;
};

}  // namespace

std::unique_ptr<Program> RandomProgram(uint32_t seed, RandomProgramOptions options) {
  return Generator(seed, options).Make();
}

}  // namespace skiff
