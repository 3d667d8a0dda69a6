// Trains LeNet on generated images. Its activation is an operator of this program's own.
#include <skiff/op.h>
#include <skiff/skiff.h>

#include <cmath>
#include <iostream>
#include <random>

using namespace skiff;

// Adds swish_beta, Out = X * sigmoid(beta * X), and its gradient to the operators.
void RegisterSwishBeta(OpRegistry& registry) {
  const AttrDef beta = {.name = "beta",
                        .type = AttrType::kFloat,
                        .default_value = 1.0f,
                        .doc = "The slope of the sigmoid."};
  OpDef def;
  def.type = "swish_beta";
  def.doc = "Out = X * sigmoid(beta * X).";
  def.inputs = {{.name = "X", .doc = "Any shape."}};
  def.outputs = {{.name = "Out", .doc = "Of X's shape."}};
  def.attrs = {beta};
  def.infer = [](OpContext& context) { context.SetOutputLike("Out", "X"); };
  def.grad = GradOp("swish_beta_grad", {"X", "Out@GRAD"}, {"X@GRAD"});
  registry.Add(def);
  registry.AddCpuKernels<float, double>("swish_beta", []<typename T>(PrepareContext& context) {
    const T beta = context.Attr<float>("beta");
    const int in = context.InputIndex("X"), out = context.OutputIndex("Out");
    return MakeKernel([=](const KernelContext& run) {
      const T* x = run.input(in).data<T>();
      T* y = run.output(out).data<T>();
      ParallelFor(run.input(in).element_count(), 4096, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = x[i] / (1 + std::exp(-beta * x[i]));
      });
    });
  });

  OpDef grad;
  grad.type = "swish_beta_grad";
  grad.doc = "X@GRAD = Out@GRAD * s * (1 + beta * X * (1 - s)), where s = sigmoid(beta * X).";
  grad.inputs = {{.name = "X", .doc = "X of swish_beta."},
                 {.name = "Out@GRAD", .doc = "Gradient of Out."}};
  grad.outputs = {{.name = "X@GRAD", .doc = "Gradient of X."}};
  grad.attrs = {beta};
  grad.infer = [](OpContext& context) {
    const TensorMeta& x = context.Input("X");
    CheckInputLike(context, "Out@GRAD", x.shape, x.dtype);
    context.SetOutputLike("X@GRAD", "X");
  };
  grad.no_gradient_reason = "no second derivatives";
  registry.Add(grad);
  registry.AddCpuKernels<float, double>("swish_beta_grad", []<typename T>(PrepareContext& context) {
    const T beta = context.Attr<float>("beta");
    const int in = context.InputIndex("X"), out_grad = context.InputIndex("Out@GRAD");
    const int in_grad = context.OutputIndex("X@GRAD");
    return MakeKernel([=](const KernelContext& run) {
      const T* x = run.input(in).data<T>();
      const T* dy = run.input(out_grad).data<T>();
      T* dx = run.output(in_grad).data<T>();
      ParallelFor(run.input(in).element_count(), 4096, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T s = 1 / (1 + std::exp(-beta * x[i]));
          dx[i] = dy[i] * s * (1 + beta * x[i] * (1 - s));
        }
      });
    });
  });
}

// The layer: appends the operator to the current program. Errors name the caller's line.
Variable SwishBeta(const Variable& x, float beta,
                   std::source_location site = std::source_location::current()) {
  const LayerCall call("swish_beta", "", site);
  Op op("swish_beta");
  op.SetInput("X", {call.CheckedName(x)}).SetAttr("beta", beta);
  return call.AppendFor(op);
}

Variable LeNet(Variable x) {
  x = SwishBeta(layers::Conv2d(x, {.filters = 6, .kernel = 5, .padding = 2}), 1.5f);
  x = layers::Pool2d(x, {.kernel = 2, .stride = 2});
  x = SwishBeta(layers::Conv2d(x, {.filters = 16, .kernel = 5}), 1.5f);
  x = layers::Pool2d(x, {.kernel = 2, .stride = 2});
  x = layers::Fc(
      x, 120, {.num_flatten_dims = 1, .act = "swish_beta"});  // every layer knows it by name, too
  return layers::Fc(layers::Fc(x, 84, {.act = "relu"}), 10);
}

// Ten random patterns, and noisy copies of them.
struct Images {
  std::mt19937 random{1};
  std::vector<float> patterns = std::vector<float>(10 * 784);
  Images() {
    for (float& pixel : patterns) pixel = static_cast<float>(random() % 2);
  }
  void Fill(Tensor* image, Tensor* label) {
    std::normal_distribution<float> noise(0.0f, 0.5f);
    for (int64_t i = 0; i < image->shape()[0]; ++i) {
      const int64_t digit = label->data<int64_t>()[i] = static_cast<int64_t>(random() % 10);
      for (int64_t p = 0; p < 784; ++p)
        image->data<float>()[i * 784 + p] = patterns[digit * 784 + p] + noise(random);
    }
  }
};

int main() {
  RegisterSwishBeta(DefaultOpRegistry());
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable image = layers::Data("image", {-1, 1, 28, 28});
  const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
  const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(LeNet(image), label));
  optimizer::Adam({.learning_rate = 2e-3}).Minimize(loss);

  Executor executor;
  executor.Run(startup);
  Tensor images({32, 1, 28, 28}, DType::kFloat32), labels({32, 1}, DType::kInt64);
  BoundProgram step = executor.Compile(main).Bind({{"image", images}, {"label", labels}}, {loss});
  Images generated;
  for (int i = 0; i <= 60; ++i) {
    generated.Fill(&images, &labels);
    step.Step();
    if (i % 20 == 0) std::cout << "step " << i << ": loss " << step.fetch(0).Item<float>() << "\n";
  }
}
