// uniform_random: Out[i] is uniform in [min, max).
//
// Source: Fluid's uniform_random. float32: element i is drawn from word i of the stream (24 bits);
// float64: from words 2i and 2i + 1 (53 bits). Out = min + (max - min) * u, or the largest number
// below max if that rounds to max. With `diag_num` > 0, elements k * diag_step + k, k < diag_num,
// are set to diag_val, as in Fluid.
#include <cmath>
#include <type_traits>

#include "framework/base/error.h"
#include "operators/random/kernels/random_tensor.h"

namespace skiff {
namespace {

struct UniformRange {
  double min = 0;
  double max = 0;
};

struct Diagonal {
  int64_t count = 0;
  int64_t step = 0;
  float value = 0;

  int64_t Position(int64_t k) const { return k * step + k; }
};

Diagonal DiagonalOf(const OpContext& context) {
  return {context.IntAttr("diag_num"), context.IntAttr("diag_step"),
          context.Attr<float>("diag_val")};
}

template <typename T>
T UnitNumber(const uint32_t* words) {
  if constexpr (std::is_same_v<T, float>) {
    return UnitFloat(words[0]);
  } else {
    return UnitDouble(words[0], words[1]);
  }
}

template <typename T>
void FillUniform(const RandomKey& key, const UniformRange& range, Tensor* out) {
  const T below_max = range.min < range.max
                          ? std::nextafter(static_cast<T>(range.max), static_cast<T>(range.min))
                          : static_cast<T>(range.max);
  FillFromWords<T>(key, std::is_same_v<T, float> ? 1 : 2, out, [=](const uint32_t* words) {
    const double unit = static_cast<double>(UnitNumber<T>(words));
    return std::min(static_cast<T>(range.min + (range.max - range.min) * unit), below_max);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareUniform(PrepareContext& context) {
  const UniformRange range{context.Attr<float>("min"), context.Attr<float>("max")};
  return MakeKernel([range, diagonal = DiagonalOf(context), seed = context.IntAttr("seed"),
                     out = Out<>(context, "Out")](const KernelContext& run) {
    Tensor& tensor = out.tensor(run);
    FillUniform<T>(InitializerKey(seed, run), range, &tensor);
    T* const data = tensor.data<T>();
    for (int64_t k = 0; k < diagonal.count; ++k) {
      data[diagonal.Position(k)] = static_cast<T>(diagonal.value);
    }
  });
}

void InferUniform(OpContext& context) {
  InferRandomTensor(context);
  const float min = context.Attr<float>("min");
  const float max = context.Attr<float>("max");
  SKIFF_ENFORCE(std::isfinite(min) && std::isfinite(max) && min <= max, kInvalidArgument,
                "uniform_random: range [", min, ", ", max, "), expected finite min <= max");
  const Diagonal diagonal = DiagonalOf(context);
  if (diagonal.count <= 0) return;
  const Shape shape = RandomShapeOf(context);
  if (!shape.is_known()) return;
  const int64_t elements = shape.element_count();
  SKIFF_ENFORCE(diagonal.step >= 0 && diagonal.Position(diagonal.count - 1) < elements, kOutOfRange,
                "uniform_random: diag_num = ", diagonal.count, " and diag_step = ", diagonal.step,
                " exceed the ", elements, " elements of Out");
}

}  // namespace

void RegisterUniformRandom(OpRegistry& registry) {
  OpDef def;
  def.type = "uniform_random";
  def.doc = "Out[i] is drawn from the uniform distribution on [min, max).";
  def.inputs = ShapeSlots();
  def.outputs = {{.name = "Out", .doc = "Random numbers."}};
  def.attrs = RandomTensorAttrs(AttrType::kLongs);
  const auto number = [&](StaticText name, float value, StaticText doc) {
    def.attrs.push_back(
        {.name = name, .type = AttrType::kFloat, .default_value = value, .doc = doc});
  };
  const auto whole = [&](StaticText name, StaticText doc) {
    def.attrs.push_back(
        {.name = name, .type = AttrType::kInt, .default_value = int32_t{0}, .doc = doc});
  };
  number("min", -1.0f, "The least number.");
  number("max", 1.0f, "The upper bound.");
  whole("diag_num", "How many elements become diag_val.");
  whole("diag_step", "Their distance less one: element k * diag_step + k, k < diag_num.");
  number("diag_val", 1.0f, "The value of those elements.");
  def.infer = InferUniform;
  def.precision = Precision::kNone;
  def.no_gradient_reason = "the output is random and depends on no input";
  def.kernel_dtype_slot = "Out";
  def.random = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>("uniform_random", []<typename T>(PrepareContext& context) {
    return PrepareUniform<T>(context);
  });
}

}  // namespace skiff
