// The words of the stream that random ops draw from, and errors.
#include "operators/random/random_ops.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "framework/tensor/layout_copy.h"
#include "framework/tensor/philox.h"

namespace skiff {
namespace {

struct Draw {
  uint64_t seed = 3;
  uint64_t op_id = 5;
  uint64_t step = 7;
};

constexpr int64_t kElements = 40003;  // for several threads, and not a multiple of four

const OpRegistry& Registry() {
  static const OpRegistry& registry = *[] {
    auto* made = new OpRegistry;
    RegisterRandomOps(*made);
    return made;
  }();
  return registry;
}

void RunOp(const Op& op, const Draw& draw, std::vector<Tensor*> inputs,
           std::vector<Tensor*> outputs) {
  const auto metas = [](const std::vector<Tensor*>& tensors) {
    std::vector<TensorMeta> result;
    for (const Tensor* tensor : tensors) {
      result.push_back(
          {.shape = tensor->shape(), .dtype = tensor->dtype(), .layout = tensor->layout()});
    }
    return result;
  };
  PrepareContext context(op, Registry().Get(op.type), metas(inputs), metas(outputs));
  const auto kernel = Registry().SelectKernel(context).prepare(context);
  KernelContext run;
  run.inputs = std::move(inputs);
  run.outputs = std::move(outputs);
  std::vector<std::vector<int64_t>> workspaces;
  for (const int64_t bytes : context.workspace_bytes()) {
    workspaces.emplace_back(static_cast<size_t>(bytes / 8 + 1));
  }
  for (std::vector<int64_t>& workspace : workspaces) run.workspaces.push_back(workspace.data());
  run.seed = &draw.seed;
  run.step = &draw.step;
  run.op_id = draw.op_id;
  kernel->Run(run);
}

std::vector<uint8_t> DropoutMask(DType dtype, const AttributeMap& attrs, const Draw& draw,
                                 int64_t seed_tensor = 0) {
  Tensor x({kElements}, dtype);
  std::fill_n(static_cast<char*>(x.raw_data()), x.byte_count(), char{0});
  Tensor out({kElements}, dtype);
  Tensor mask({kElements}, DType::kUint8);
  Tensor seed = Tensor::FromValues<int32_t>({1}, {static_cast<int32_t>(seed_tensor)});
  Op op("dropout");
  op.attrs = attrs;
  op.SetInput("X", {"x"}).SetInput("Seed", {"seed"});
  op.SetOutput("Out", {"out"}).SetOutput("Mask", {"mask"});
  RunOp(op, draw, {&x, &seed}, {&out, &mask});
  return mask.ToVector<uint8_t>();
}

// Returns the mask that follows from the documented words.
std::vector<uint8_t> ExpectedMask(const RandomKey& key, uint32_t threshold) {
  const Philox philox(key);
  std::vector<uint8_t> mask;
  for (uint64_t i = 0; i < kElements; ++i) mask.push_back(philox.At(i / 4)[i % 4] >= threshold);
  return mask;
}

std::vector<float> Sample(const std::string& type, int32_t seed, const Draw& draw) {
  Tensor out({kElements}, DType::kFloat32);
  Op op(type);
  op.SetAttr("shape", std::vector<int32_t>{static_cast<int32_t>(kElements)}).SetAttr("seed", seed);
  op.SetOutput("Out", {"out"});
  RunOp(op, draw, {}, {&out});
  return out.ToVector<float>();
}

TEST(Dropout, DrawsTheDocumentedWordsWhateverTheDtype) {
  const AttributeMap quarter = {{"dropout_prob", 0.25f}};
  const auto expected = ExpectedMask({.seed = 3, .op_id = 5, .step = 7}, 0x40000000U);
  EXPECT_EQ(DropoutMask(DType::kFloat32, quarter, {}), expected);
  EXPECT_EQ(DropoutMask(DType::kFloat64, quarter, {}), expected);
}

TEST(Dropout, DrawsTheSameOnAnyNumberOfThreads) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const auto one = DropoutMask(DType::kFloat32, {}, {});
  omp_set_num_threads(4);
  EXPECT_EQ(DropoutMask(DType::kFloat32, {}, {}), one);
  omp_set_num_threads(before);
}

TEST(Dropout, DropsAnewInEachStepAndEachOp) {
  const auto mask = DropoutMask(DType::kFloat32, {}, {});
  EXPECT_NE(DropoutMask(DType::kFloat32, {}, {.step = 8}), mask);
  EXPECT_NE(DropoutMask(DType::kFloat32, {}, {.op_id = 6}), mask);
  EXPECT_NE(DropoutMask(DType::kFloat32, {}, {.seed = 4}), mask);
}

TEST(Dropout, DropsBySeedAttributeAloneAndAnewInEachStep) {
  const AttributeMap seeded = {{"seed", 11}};
  const auto mask = DropoutMask(DType::kFloat32, seeded, {});
  EXPECT_EQ(mask, ExpectedMask({.seed = 11, .op_id = 0, .step = 7}, 0x80000000U));
  EXPECT_EQ(DropoutMask(DType::kFloat32, seeded, {.seed = 4, .op_id = 6}), mask);
  EXPECT_NE(DropoutMask(DType::kFloat32, seeded, {.step = 8}), mask);
  EXPECT_EQ(DropoutMask(DType::kFloat32, {}, {}, /*seed_tensor=*/11), mask);
}

TEST(Dropout, FixSeedFixesASeedOfZero) {
  const AttributeMap fixed = {{"fix_seed", true}};
  EXPECT_EQ(DropoutMask(DType::kFloat32, fixed, {.seed = 1, .op_id = 2}),
            DropoutMask(DType::kFloat32, fixed, {.seed = 3, .op_id = 4}));
}

// The results of dropout and its gradient for X and Out@GRAD of 1, 2, … with infinity at 5.
struct ImageDropout {
  std::vector<float> out;
  std::vector<uint8_t> mask;
  std::vector<float> x_grad;
};

Tensor InLayout(const Tensor& plain, Layout layout) {
  Tensor tensor(plain.shape(), plain.dtype(), Place::Cpu(), layout);
  CopyBetweenLayouts(plain, &tensor);
  return tensor;
}

// If Mask isn't read, Out must be the same.
ImageDropout DropImage(const Shape& shape, Layout layout, const AttributeMap& attrs) {
  Tensor numbers(shape, DType::kFloat32);
  for (int64_t i = 0; i < numbers.element_count(); ++i)
    numbers.data<float>()[i] = i == 5 ? INFINITY : static_cast<float>(i + 1);
  Tensor x = InLayout(numbers, layout);
  Tensor out(shape, DType::kFloat32, Place::Cpu(), layout);
  Tensor out_without_mask(shape, DType::kFloat32, Place::Cpu(), layout);
  Tensor mask(shape, DType::kUint8);
  Op op("dropout");
  op.attrs = attrs;
  op.SetInput("X", {"x"}).SetOutput("Out", {"out"});
  RunOp(op, {}, {&x}, {&out_without_mask});
  op.SetOutput("Mask", {"mask"});
  RunOp(op, {}, {&x}, {&out, &mask});
  Tensor x_grad(shape, DType::kFloat32, Place::Cpu(), layout);
  Op grad("dropout_grad");
  grad.attrs = attrs;
  grad.SetInput("Mask", {"mask"}).SetInput("Out@GRAD", {"g"}).SetOutput("X@GRAD", {"dx"});
  RunOp(grad, {}, {&mask, &x}, {&x_grad});
  const auto values = [](const Tensor& tensor) {
    return InLayout(tensor, Layout::Plain()).ToVector<float>();
  };
  EXPECT_EQ(values(out_without_mask), values(out));
  return {values(out), mask.ToVector<uint8_t>(), values(x_grad)};
}

TEST(Dropout, DropsTheSameElementsInEveryLayout) {
  const std::vector<Shape> shapes = {{2, 17, 5, 7}, {2, 24, 20, 21}, {3, 16, 1, 1}, {1, 9, 33, 31}};
  for (const Shape& shape : shapes) {
    for (const bool upscale : {false, true}) {
      const AttributeMap attrs = {
          {"dropout_prob", 0.25f},
          {"dropout_implementation",
           std::string(upscale ? "upscale_in_train" : "downgrade_in_infer")}};
      const ImageDropout plain = DropImage(shape, Layout::Plain(), attrs);
      for (const int32_t block : {8, 16}) {
        const ImageDropout blocked = DropImage(shape, Layout::Blocked(block), attrs);
        SCOPED_TRACE(StrCat(shape, " in blocks of ", block));
        EXPECT_EQ(blocked.mask, plain.mask);
        EXPECT_EQ(blocked.out, plain.out);
        EXPECT_EQ(blocked.x_grad, plain.x_grad);
      }
    }
  }
}

TEST(Dropout, RefusesProbabilitiesAndModesThatAreNone) {
  Op op("dropout");
  op.SetInput("X", {"x"}).SetOutput("Out", {"out"});
  const OpDef& def = Registry().Get("dropout");
  EXPECT_THROW(CheckOp(def, Op(op).SetAttr("dropout_prob", 1.5f)), Error);
  EXPECT_THROW(CheckOp(def, Op(op).SetAttr("dropout_prob", -0.5f)), Error);
  EXPECT_THROW(CheckOp(def, Op(op).SetAttr("dropout_implementation", std::string("upscale"))),
               Error);
  EXPECT_NO_THROW(CheckOp(def, Op(op).SetAttr("dropout_prob", 1.0f)));
}

TEST(Initializers, DrawBySeedAttributeAlone) {
  for (const char* type : {"uniform_random", "gaussian_random", "truncated_gaussian_random"}) {
    const auto seeded = Sample(type, 11, {});
    EXPECT_EQ(Sample(type, 11, {.seed = 4, .op_id = 6, .step = 8}), seeded) << type;
    EXPECT_NE(Sample(type, 12, {}), seeded) << type;
    EXPECT_NE(Sample(type, 0, {}), Sample(type, 0, {.op_id = 6})) << type;
    EXPECT_NE(Sample(type, 0, {}), Sample(type, 0, {.step = 8})) << type;
  }
}

TEST(Initializers, DrawTheSameOnAnyNumberOfThreads) {
  const int before = omp_get_max_threads();
  for (const char* type : {"uniform_random", "gaussian_random", "truncated_gaussian_random"}) {
    omp_set_num_threads(1);
    const auto one = Sample(type, 0, {});
    omp_set_num_threads(4);
    EXPECT_EQ(Sample(type, 0, {}), one) << type;
  }
  omp_set_num_threads(before);
}

Op RandintOp(int32_t seed) {
  Op op("randint");
  op.attrs = {{"low", 0}, {"high", 1000000}, {"shape", std::vector<int64_t>{kElements}}};
  op.SetAttr("seed", seed).SetOutput("Out", {"out"});
  return op;
}

std::vector<int64_t> RunOfInts(const Op& op, const Draw& draw) {
  Tensor out({kElements}, DType::kInt64);
  RunOp(op, draw, {}, {&out});
  return out.ToVector<int64_t>();
}

TEST(Randint, DrawsBySeedAttributeAloneOrByRunOpAndStep) {
  const auto seeded = RunOfInts(RandintOp(11), {});
  EXPECT_EQ(RunOfInts(RandintOp(11), {.seed = 4, .op_id = 6, .step = 8}), seeded);
  EXPECT_NE(RunOfInts(RandintOp(12), {}), seeded);
  const auto free = RunOfInts(RandintOp(0), {});
  EXPECT_EQ(RunOfInts(RandintOp(0), {}), free);
  EXPECT_NE(RunOfInts(RandintOp(0), {.op_id = 6}), free);
  EXPECT_NE(RunOfInts(RandintOp(0), {.step = 8}), free);
}

TEST(Randperm, ShufflesAnewInEachStepAndEachOp) {
  Op op("randperm");
  op.SetAttr("n", static_cast<int32_t>(kElements)).SetOutput("Out", {"out"});
  const auto order = RunOfInts(op, {});
  EXPECT_EQ(RunOfInts(op, {}), order);
  EXPECT_NE(RunOfInts(op, {.step = 8}), order);
  EXPECT_NE(RunOfInts(op, {.op_id = 6}), order);
}

TEST(Bernoulli, DrawsTheDocumentedWordsWhateverTheDtype) {
  Op op("bernoulli");
  op.SetInput("X", {"x"}).SetOutput("Out", {"out"});
  Tensor x = Tensor::FromValues<float>({kElements}, std::vector<float>(kElements, 0.25f));
  Tensor wide = Tensor::FromValues<double>({kElements}, std::vector<double>(kElements, 0.25));
  Tensor out({kElements}, DType::kFloat32);
  Tensor wide_out({kElements}, DType::kFloat64);
  RunOp(op, {}, {&x}, {&out});
  RunOp(op, {}, {&wide}, {&wide_out});
  const auto zeros = ExpectedMask({.seed = 3, .op_id = 5, .step = 7}, 0x40000000U);
  for (int64_t i = 0; i < kElements; ++i) {
    const double expected = zeros[static_cast<size_t>(i)] == 1 ? 0.0 : 1.0;
    ASSERT_EQ(out.data<float>()[i], expected) << i;
    ASSERT_EQ(wide_out.data<double>()[i], expected) << i;
  }
}

TEST(Bernoulli, NamesWhatIsNoProbability) {
  Op op("bernoulli");
  op.SetInput("X", {"x"}).SetOutput("Out", {"out"});
  for (const float bad : {1.5f, -0.5f, NAN}) {
    Tensor x = Tensor::FromValues<float>({3}, {0.5f, bad, 0.5f});
    Tensor out({3}, DType::kFloat32);
    try {
      RunOp(op, {}, {&x}, {&out});
      FAIL() << "expected an Error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("element 1 of X"), std::string::npos);
    }
  }
}

std::string MultinomialError(std::vector<float> weights, int32_t samples, bool replacement) {
  Op op("multinomial");
  op.SetAttr("num_samples", samples).SetAttr("replacement", replacement);
  op.SetInput("X", {"x"}).SetOutput("Out", {"out"});
  Tensor x = Tensor::FromValues<float>({static_cast<int64_t>(weights.size())}, weights);
  Tensor out({samples}, DType::kInt64);
  try {
    RunOp(op, {}, {&x}, {&out});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Multinomial, NamesRowsThatAreNoDistribution) {
  const auto contains = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_EQ(MultinomialError({0, 1, 2}, 2, false), "");
  EXPECT_TRUE(contains(MultinomialError({0, 1, 2}, 3, false), "too few to draw 3"));
  EXPECT_EQ(MultinomialError({0, 1, 2}, 3, true), "");
  EXPECT_TRUE(contains(MultinomialError({0, 0}, 1, true), "adds up to 0"));
  EXPECT_TRUE(contains(MultinomialError({1, -1}, 1, true), "element 1 of row 0"));
  EXPECT_TRUE(contains(MultinomialError({NAN, 1}, 1, true), "element 0 of row 0"));
}

TEST(IndexSampling, DrawsTheSameOnAnyNumberOfThreads) {
  const int before = omp_get_max_threads();
  constexpr int64_t kRows = 3001;
  Op op("multinomial");
  op.SetInput("X", {"x"}).SetOutput("Out", {"out"});
  Tensor x = Tensor::FromValues<float>({kRows, 2}, std::vector<float>(2 * kRows, 1.0f));
  std::vector<std::vector<int64_t>> runs;
  for (const int threads : {1, 4}) {
    omp_set_num_threads(threads);
    Tensor out({kRows, 1}, DType::kInt64);
    RunOp(op, {}, {&x}, {&out});
    runs.push_back(out.ToVector<int64_t>());
    runs.push_back(RunOfInts(RandintOp(0), {}));
  }
  omp_set_num_threads(before);
  EXPECT_EQ(runs[0], runs[2]);
  EXPECT_EQ(runs[1], runs[3]);
}

}  // namespace
}  // namespace skiff
