// The arguments that the ops of the family refuse, and their messages.
#include <gmock/gmock.h>

#include "framework/op/infer_outputs.h"
#include "operators/nn/nn_ops.h"
#include "tests/operators/refused_op.h"

namespace skiff::harness {
namespace {

using Ints = std::vector<int32_t>;

class NnError : public ::testing::Test {
 protected:
  NnError() { RegisterNnOps(registry_); }

  OpRegistry registry_;
};

TEST_F(NnError, NormalizationsNameWhatDoesNotFit) {
  const std::vector<std::string> y = {"Y"};
  ExpectRefused(
      registry_,
      {{"layer_norm", {{"X", {2, 3}}}, y, {{"begin_norm_axis", int32_t{0}}}, "begin_norm_axis = 0"},
       {"layer_norm", {{"X", {2, 3}}}, y, {{"begin_norm_axis", int32_t{2}}}, "outside [1, 1]"},
       {"layer_norm", {{"X", {2, 3, 4}}, {"Scale", {4}}}, y, {}, "expected [12]"},
       {"layer_norm", {{"X", {2, 3, 4}}, {"Bias", {3, 4}}}, y, {}, "Bias of shape [3, 4]"},
       {"layer_norm", {{"X", {2, 3}}}, y, {{"epsilon", -1.0f}}, "epsilon"},
       {"rms_norm", {{"X", {2, 3}}}, y, {{"begin_norm_axis", int32_t{0}}}, "begin_norm_axis = 0"},
       {"rms_norm", {{"X", {2, 3, 4}}, {"Scale", {4}}}, y, {}, "expected [12]"},
       {"rms_norm", {{"X", {2, 3}}}, y, {{"epsilon", -1.0f}}, "epsilon"},
       {"group_norm", {{"X", {2, 4, 3}}}, y, {}, "groups = -1"},
       {"group_norm", {{"X", {2, 4, 3}}}, y, {{"groups", int32_t{3}}}, "divisor of the 4 channels"},
       {"group_norm", {{"X", {4}}}, y, {{"groups", int32_t{2}}}, "rank of at least 2"},
       {"group_norm",
        {{"X", {2, 4, 3}}},
        y,
        {{"groups", int32_t{2}}, {"data_layout", std::string("CHW")}},
        "CHW"},
       {"group_norm",
        {{"X", {2, 4, 3}}, {"Scale", {3}}},
        y,
        {{"groups", int32_t{2}}},
        "expected [4]"},
       {"instance_norm", {{"X", {2, 3, 1, 1, 1, 1}}}, y, {}, "rank from 2 to 5"},
       {"instance_norm", {{"X", {2, 3, 4}}, {"Scale", {2}}}, y, {}, "expected [3]"}});
}

TEST_F(NnError, AttentionNamesWhatDoesNotFit) {
  const auto attention = [](const std::string& slot, const Shape& shape, const AttributeMap& attrs,
                            const std::string& message) {
    return RefusedOp{
        "multihead_attention",
        {{"Query", {2, 3, 4}}, {"Key", {2, 5, 4}}, {"Value", {2, 5, 4}}, {slot, shape}},
        {"Out"},
        attrs,
        message};
  };
  const AttributeMap causal = {{"causal", true}};
  ExpectRefused(registry_, {attention("Positions", {2, 3}, causal, "Positions is float32"),
                            attention("Positions", {2, 3}, {}, "found Positions without causal"),
                            {"multihead_attention",
                             {{"Query", {2, 3, 4}},
                              {"Key", {2, 5, 4}},
                              {"Value", {2, 5, 4}},
                              {"KeyLengths", {2}},
                              {"Positions", {2, 3}}},
                             {"Out"},
                             causal,
                             "found Positions and KeyLengths"},
                            attention("Bias", {4, 5}, causal, "Bias has the shape [4, 5]"),
                            attention("KeyLengths", {2}, {}, "KeyLengths is float32")});
}

TEST_F(NnError, PositionsNameWhatDoesNotFit) {
  const std::vector<std::string> out = {"Out"};
  const auto write = [&](const Shape& cache, const Shape& x, const std::string& message) {
    return RefusedOp{
        "write_to_cache", {{"Cache", cache}, {"X", x}, {"Positions", {2, 3}}}, out, {}, message};
  };
  const auto rotary = [&](const Shape& x, const AttributeMap& attrs, const std::string& message) {
    return RefusedOp{"rotary_embedding", {{"X", x}}, out, attrs, message};
  };
  ExpectRefused(
      registry_,
      {{"token_positions", {{"X", {2}}}, out, {}, "X has the shape [2], expected [N, L, ...]"},
       {"token_positions", {{"X", {2, 3}}, {"Start", {2}}}, out, {}, "Start is float32"},
       {"token_positions",
        {{"X", {2, 5}}},
        out,
        {{"limit", int32_t{4}}},
        "5 tokens in a sequence, expected at most the limit, 4"},
       {"token_positions", {{"X", {2, 5}}}, out, {{"limit", int32_t{-1}}}, "limit"},
       write({2, 5, 4}, {2, 3}, "expected [N, capacity, ...] and [N, L, ...]"),
       write({2, 5, 4}, {2, 3, 5}, "X is float32 [2, 3, 5]"),
       write({2, 2, 4}, {2, 3, 4}, "X has 3 rows for each sequence, expected at most the 2"),
       write({2, 5, 4}, {2, 3, 4}, "Positions is float32"),
       rotary({2, 6}, {}, "X has the shape [2, 6], expected [N, L, columns]"),
       rotary({2, 3, 6}, {{"num_heads", int32_t{2}}},
              "6 columns of X can't be 2 heads of an even width"),
       rotary({2, 3, 6}, {{"num_heads", int32_t{0}}}, "num_heads"),
       rotary({2, 3, 6}, {{"base", 0.0f}}, "base"),
       {"rotary_embedding",
        {{"X", {2, 3, 6}}, {"Positions", {2, 3}}},
        out,
        {},
        "Positions is float32"}});
}

TEST_F(NnError, ConvolutionsNameWhatDoesNotFit) {
  const std::vector<std::string> output = {"Output"};
  const Shape image = {1, 4, 5, 5};
  const Shape volume = {1, 4, 5, 5, 5};
  const auto transpose = [&](const Shape& filter, const AttributeMap& attrs,
                             const std::string& message) {
    return RefusedOp{
        "conv2d_transpose", {{"Input", image}, {"Filter", filter}}, output, attrs, message};
  };
  const auto conv3d = [&](const Shape& filter, const AttributeMap& attrs,
                          const std::string& message) {
    return RefusedOp{"conv3d", {{"Input", volume}, {"Filter", filter}}, output, attrs, message};
  };
  ExpectRefused(
      registry_,
      {transpose({3, 2, 3, 3}, {}, "first dim of Filter"),
       transpose({4, 2, 3}, {}, "Filter of shape [4, 2, 3]"),
       transpose({4, 2, 3, 3}, {{"groups", int32_t{3}}}, "divisor of the 4"),
       transpose({4, 2, 3, 3}, {{"output_size", Ints{8, 7}}}, "output_size = [8, 7]"),
       transpose({4, 2, 3, 3}, {{"output_size", Ints{6, 7}}}, "expected 7 to 7 for height"),
       transpose({4, 2, 3, 3}, {{"output_size", Ints{7}}}, "expected 2 values"),
       transpose({4, 2, 3, 3}, {{"output_padding", Ints{0, 1}}}, "output_padding = [0, 1]"),
       transpose({4, 2, 1, 1}, {{"paddings", Ints{3, 3}}}, "output height of -1"),
       transpose({4, 2, 3, 3}, {{"paddings", Ints{1, 1, 1}}}, "paddings"),
       transpose({4, 2, 3, 3}, {{"strides", Ints{0, 1}}}, "strides"),
       transpose({4, 2, 3, 3}, {{"dilations", Ints{1}}}, "dilations"),
       {"conv3d_transpose",
        {{"Input", volume}, {"Filter", {4, 2, 3, 3, 3}}},
        output,
        {{"output_size", Ints{6, 7, 7}}},
        "expected 7 to 7 for depth"},
       {"conv3d_transpose", {{"Input", volume}, {"Filter", {4, 2, 3, 3}}}, output, {}, "Filter of"},
       conv3d({2, 3, 2, 2, 2}, {}, "expected 3"),
       conv3d({2, 4, 2, 2}, {}, "Filter of shape [2, 4, 2, 2]"),
       conv3d({2, 4, 2, 2, 0}, {}, "extents of at least 1"),
       conv3d({2, 4, 6, 2, 2}, {}, "the input's depth of 5"),
       conv3d({3, 2, 2, 2, 2}, {{"groups", int32_t{2}}}, "divisor of the 3"),
       conv3d({2, 4, 2, 2, 2}, {{"data_format", std::string("NCHW")}}, "NCDHW or NDHWC"),
       conv3d({2, 4, 2, 2, 2}, {{"padding_algorithm", std::string("FULL")}}, "FULL"),
       {"conv3d", {{"Input", image}, {"Filter", {2, 4, 2, 2, 2}}}, output, {}, "expected rank 5"}});
}

TEST_F(NnError, PoolingAndResizingNameWhatDoesNotFit) {
  const auto pool = [](const AttributeMap& attrs, const std::string& message) {
    return RefusedOp{"pool3d", {{"X", {1, 2, 4, 4, 4}}}, {"Out"}, attrs, message};
  };
  const auto resize = [](const AttributeMap& attrs, const std::string& message) {
    return RefusedOp{"bilinear_interp_v2", {{"X", {1, 2, 4, 4}}}, {"Out"}, attrs, message};
  };
  const std::string average = "avg";
  ExpectRefused(
      registry_,
      {pool({{"pooling_type", average}, {"ksize", Ints{2, 2}}}, "ksize = [2, 2]"),
       pool({{"pooling_type", average}, {"ksize", Ints{5, 2, 2}}}, "depth of 4"),
       pool({{"pooling_type", std::string("sum")}, {"ksize", Ints{2, 2, 2}}}, "\"sum\""),
       pool({{"pooling_type", average}, {"ksize", Ints{2, 2, 0}}}, "values from 1"),
       {"pool2d",
        {{"X", {1, 2, 4, 4}}},
        {"Out"},
        {{"pooling_type", average}, {"ksize", Ints{1, 1 << 30}}, {"adaptive", true}},
        "1073741824 windows along an axis of 4"},
       pool({{"pooling_type", average}, {"ksize", Ints{1, 1 << 30, 1}}, {"adaptive", true}},
            "1073741824 windows along an axis of 4"),
       resize({}, "height of 0"),
       resize({{"out_h", int32_t{3}}}, "width of 0"),
       resize({{"scale", std::vector<float>{0.0f}}}, "scale = 0"),
       resize({{"scale", std::vector<float>{0.1f}}}, "height of 0"),
       resize({{"scale", std::vector<float>{1, 1, 1}}}, "3 values"),
       {"bilinear_interp", {{"X", {1, 2, 4, 4}}}, {"Out"}, {{"scale", -1.0f}}, "scale = -1"},
       resize({{"out_h", int32_t{3}}, {"out_w", int32_t{3}}, {"align_mode", int32_t{2}}},
              "align_mode = 2"),
       resize({{"interp_method", std::string("nearest")}}, "expected \"bilinear\""),
       {"nearest_interp_v2",
        {{"X", {1, 2, 4, 4}}},
        {"Out"},
        {{"scale", std::vector<float>{2.0f}}},
        "interp_method = \"bilinear\""},
       {"nearest_interp_v2",
        {{"X", {1, 2, 0, 4}}},
        {"Out"},
        {{"interp_method", std::string("nearest")}, {"out_h", int32_t{3}}, {"out_w", int32_t{3}}},
        "no pixels"}});
}

TEST_F(NnError, SamplingNamesWhatDoesNotFit) {
  const std::vector<std::string> output = {"Output"};
  const auto sample = [&](const Shape& x, const Shape& grid, const AttributeMap& attrs,
                          const std::string& message) {
    return RefusedOp{"grid_sampler", {{"X", x}, {"Grid", grid}}, output, attrs, message};
  };
  const auto affine = [&](const Shape& theta, const Ints& dims, const std::string& message) {
    return RefusedOp{"affine_grid", {{"Theta", theta}}, output, {{"output_shape", dims}}, message};
  };
  const Shape image = {2, 3, 4, 5};
  const std::string cubic = "bicubic";
  ExpectRefused(
      registry_,
      {sample({2, 3, 4}, {2, 4, 2}, {}, "expected [N, C, H, W] or [N, C, D, H, W]"),
       sample(image, {2, 4, 5, 3}, {}, "the last one of 2 coordinates"),
       sample(image, {2, 4, 5, 5, 2}, {}, "expected as many dims"),
       sample(image, {3, 4, 5, 2}, {}, "the numbers of images of X and of Grid"),
       sample({2, 3, 4, 5, 6}, {2, 4, 5, 5, 3}, {{"mode", cubic}}, "expected images"),
       sample(image, {2, 4, 5, 2}, {{"padding_mode", std::string("wrap")}}, "padding_mode"),
       sample({2, 3, 0, 5}, {2, 4, 5, 2}, {}, "nothing to sample"),
       affine({2, 3, 3}, {2, 3, 4, 5}, "Theta of shape [2, 3, 3]"),
       affine({2, 2, 3}, {2, 3, 4}, "expected [N, C, H, W] or [N, C, D, H, W]"),
       affine({2, 2, 3}, {2, 3, 4, 5, 6}, "expected 2 dims besides N and C"),
       affine({2, 2, 3}, {3, 3, 4, 5}, "N of Theta and of output_shape"),
       affine({2, 2, 3}, {2, 3, -1, 5}, "expected dims of 0 or more")});
}

TEST_F(NnError, ColumnsNameWhatDoesNotFit) {
  const std::vector<std::string> y = {"Y"};
  const AttributeMap plain = {{"kernel_sizes", Ints{2, 2}},
                              {"strides", Ints{1, 1}},
                              {"paddings", Ints{0, 0, 0, 0}},
                              {"dilations", Ints{1, 1}}};
  const auto with = [&](const std::string& name, const Ints& values) {
    AttributeMap attrs = plain;
    attrs[name] = values;
    return attrs;
  };
  const auto fold = [&](const Shape& x, const Ints& sizes, const std::string& message) {
    return RefusedOp{"fold", {{"X", x}}, y, with("output_sizes", sizes), message};
  };
  const auto unfold = [&](const AttributeMap& attrs, const std::string& message) {
    return RefusedOp{"unfold", {{"X", {2, 3, 4, 5}}}, y, attrs, message};
  };
  ExpectRefused(registry_,
                {unfold(with("kernel_sizes", {2}), "kernel_sizes = [2]"),
                 unfold(with("kernel_sizes", {5, 2}), "a window of 5 points does not fit"),
                 unfold(with("paddings", {1, 1}), "expected [top, left, bottom, right]"),
                 unfold(with("paddings", {0, -1, 0, 0}), "paddings = [0, -1, 0, 0]"),
                 unfold(with("strides", {0, 1}), "strides"),
                 unfold(with("dilations", {1, 0}), "dilations"),
                 {"unfold", {{"X", {2, 3, 4}}}, y, plain, "expected rank 4"},
                 fold({2, 12, 12, 1}, {4, 5}, "expected rank 3"),
                 fold({2, 10, 12}, {4, 5}, "a multiple of the window's 4 taps"),
                 fold({2, 12, 11}, {4, 5}, "expected 3 * 4 points"),
                 fold({2, 12, 12}, {4}, "output_sizes = [4]")});
}

TEST_F(NnError, PoolingWithIndicesNamesWhatDoesNotFit) {
  const auto pool = [](const Shape& x, const AttributeMap& attrs, const std::string& message) {
    return RefusedOp{"max_pool2d_with_index", {{"X", x}}, {"Out", "Mask"}, attrs, message};
  };
  ExpectRefused(registry_,
                {pool({2, 3, 4}, {{"ksize", Ints{2, 2}}}, "expected rank 4"),
                 pool({2, 3, 4, 5}, {{"ksize", Ints{2}}}, "ksize = [2]"),
                 pool({2, 3, 4, 5}, {{"ksize", Ints{5, 2}}}, "a window of 5 pixels does not fit")});
}

// A program may say the size by an input and have an attribute besides, which doesn't count then.
TEST_F(NnError, ResizingDoesNotReadASizeThatIsUnknown) {
  for (const char* type : {"bilinear_interp", "bilinear_interp_v2"}) {
    for (const Ints& own : std::vector<Ints>{{}, {7}, {7, 8}, {7, 8, 9}}) {
      Op op(type);
      op.SetInput("X", {"x"}).SetInput("OutSize", {"size"}).SetOutput("Out", {"out"});
      op.SetAttr("out_size", own);
      const TensorMeta x{.shape = {1, 2, 4, 4}};
      TensorMeta size{.shape = {2}, .dtype = DType::kInt32};
      OpContext unknown(op, registry_.Get(type), {x, size}, {TensorMeta{}});
      InferOutputs(&unknown);
      EXPECT_EQ(unknown.outputs()[0].shape, (Shape{1, 2, -1, -1})) << type;
      size = {.shape = {1}, .dtype = DType::kInt32};
      size.contents = std::make_shared<const Tensor>(Tensor::FromValues<int32_t>({1}, {5}));
      OpContext known(op, registry_.Get(type), {x, size}, {TensorMeta{}});
      const std::string found = ErrorText([&] { InferOutputs(&known); });
      EXPECT_NE(found.find("out_size has 1 numbers, expected height and width"), std::string::npos)
          << found;
    }
  }
}

TEST_F(NnError, GradientsOfAnotherShapeAreRefused) {
  const std::vector<std::string> dx = {"X@GRAD"};
  const Shape x = {2, 4, 3};
  const AttributeMap two_groups = {{"groups", int32_t{2}}};
  const auto norm = [&](const std::string& type, const AttributeMap& attrs, const Shape& mean,
                        const Shape& variance, const Shape& gradient, const std::string& message) {
    const bool is_instance = type == "instance_norm_grad";
    return RefusedOp{type,
                     {{"X", x},
                      {is_instance ? "SavedMean" : "Mean", mean},
                      {is_instance ? "SavedVariance" : "Variance", variance},
                      {"Y@GRAD", gradient}},
                     dx,
                     attrs,
                     message};
  };
  ExpectRefused(
      registry_,
      {norm("layer_norm_grad", {}, {2}, {2}, {2, 4}, "Y@GRAD"),
       norm("layer_norm_grad", {}, {1}, {2}, x, "Mean"),
       norm("layer_norm_grad", {}, {2}, {1}, x, "Variance"),
       norm("group_norm_grad", two_groups, {2, 2}, {2, 2}, {2, 4, 2}, "Y@GRAD"),
       norm("group_norm_grad", two_groups, {2, 1}, {2, 2}, x, "Mean"),
       norm("group_norm_grad", two_groups, {2, 2}, {2}, x, "Variance"),
       norm("instance_norm_grad", {}, {8}, {8}, {2, 4}, "Y@GRAD"),
       norm("instance_norm_grad", {}, {4}, {8}, x, "SavedMean"),
       norm("instance_norm_grad", {}, {8}, {2}, x, "SavedVariance"),
       {"conv2d_transpose_grad",
        {{"Input", {1, 4, 5, 5}}, {"Filter", {4, 2, 3, 3}}, {"Output@GRAD", {1, 2, 7, 6}}},
        {"Input@GRAD"},
        {},
        "Output@GRAD"},
       {"conv3d_grad",
        {{"Input", {1, 4, 5, 5, 5}}, {"Filter", {2, 4, 2, 2, 2}}, {"Output@GRAD", {1, 2, 4, 4, 3}}},
        {"Input@GRAD"},
        {},
        "Output@GRAD"},
       {"pool3d_grad",
        {{"X", {1, 2, 4, 4, 4}}, {"Out", {1, 2, 3, 3, 3}}, {"Out@GRAD", {1, 2, 3, 3, 2}}},
        dx,
        {{"pooling_type", std::string("max")}, {"ksize", Ints{2, 2, 2}}},
        "Out@GRAD"},
       {"bilinear_interp_v2_grad",
        {{"X", {1, 2, 4, 4}}, {"Out@GRAD", {1, 2, 3, 2}}},
        dx,
        {{"out_h", int32_t{3}}, {"out_w", int32_t{3}}},
        "Out@GRAD"}});
}

TEST_F(NnError, TokenPositionsNamesTheStartWithoutRoom) {
  Op op("token_positions");
  op.attrs = {{"limit", int32_t{10}}};
  op.SetInput("X", {"x"});
  op.SetInput("Start", {"start"});
  op.SetOutput("Out", {"out"});
  // Refuses starts of `tokens` tokens.
  const auto error_of = [&](int64_t tokens, const std::vector<int64_t>& starts) {
    const std::vector<int64_t> ids(static_cast<size_t>(3 * tokens), 1);
    NamedTensors inputs;
    inputs["x"] = Tensor::FromValues<int64_t>({3, tokens}, ids);
    inputs["start"] = Tensor::FromValues<int64_t>({3}, starts);
    PreparedOp prepared(registry_, op, inputs);
    prepared.Load(inputs, 0xFF);
    return ErrorText([&] { prepared.Run(); });
  };
  const std::string rest = ", expected 0 to 7 for 3 tokens at positions below 10";
  EXPECT_THAT(error_of(3, {0, 8, 9}), ::testing::HasSubstr("Start[1] is 8" + rest));
  EXPECT_THAT(error_of(3, {7, 7, -1}), ::testing::HasSubstr("Start[2] is -1" + rest));
  EXPECT_THAT(error_of(0, {10, 11, 0}), ::testing::HasSubstr("Start[1] is 11, expected 0 to 10"));
}

}  // namespace
}  // namespace skiff::harness
