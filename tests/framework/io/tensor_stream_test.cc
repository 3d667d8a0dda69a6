#include "framework/io/tensor_stream.h"

#include <gtest/gtest.h>

#include <string>

#include "memory/places.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

std::string StreamOf(const Tensor& tensor) {
  StringSink sink;
  WriteTensorStream(tensor, &sink);
  return sink.bytes();
}

Tensor Parse(const std::string& bytes) {
  MemorySource source(bytes, "memory");
  Tensor tensor = ReadTensorStream(&source);
  EXPECT_EQ(source.remaining(), 0);
  return tensor;
}

Error ParseError(const std::string& bytes) {
  return ErrorOf([&] { Parse(bytes); });
}

template <typename... Numbers>
std::string Little(Numbers... numbers) {
  std::string bytes;
  (AppendNumber(numbers, &bytes), ...);
  return bytes;
}

// TensorDesc by hand: field 1 (varint) data_type, field 2 (varint, not packed) dims.
std::string Desc(char dtype, const std::string& dims) {
  std::string desc = {0x08, dtype};
  for (char dim : dims) desc += {0x10, dim};
  return desc;
}

std::string Head(const std::string& desc) {
  return Little(uint32_t{0}, uint64_t{0}, uint32_t{0}, static_cast<int32_t>(desc.size())) + desc;
}

const std::string kGolden = Little(uint32_t{0}, uint64_t{1}, uint64_t{24}, uint64_t{0}, uint64_t{1},
                                   uint64_t{3}, uint32_t{0}, int32_t{6}) +
                            Desc(5, "\x03\x02") + Little(1.f, 2.f, 3.f, 4.f, 5.f, 6.f);

Tensor Sample() {
  Tensor tensor = Tensor::FromValues<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  tensor.set_lod({{0, 1, 3}});
  return tensor;
}

TEST(TensorStream, HasTheBytesOfFluid) { EXPECT_EQ(StreamOf(Sample()), kGolden); }

TEST(TensorStream, ReadsTheBytesOfFluid) {
  const Tensor tensor = Parse(kGolden);
  EXPECT_EQ(tensor.shape(), Shape({3, 2}));
  EXPECT_EQ(tensor.lod(), (LoD{{0, 1, 3}}));
  EXPECT_EQ(tensor.ToVector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(TensorStream, ReadsPackedDims) {
  const std::string desc("\x08\x05\x12\x02\x01\x02", 6);
  EXPECT_EQ(Parse(Head(desc) + Little(1.f, 2.f)).shape(), Shape({1, 2}));
}

template <typename T>
void ExpectRoundTrip(const Shape& shape, const std::vector<T>& values) {
  const Tensor tensor = Parse(StreamOf(Tensor::FromValues<T>(shape, values)));
  EXPECT_EQ(tensor.shape(), shape);
  EXPECT_EQ(tensor.dtype(), kDTypeOf<T>);
  EXPECT_EQ(tensor.ToVector<T>(), values);
  EXPECT_TRUE(tensor.lod().empty());
}

TEST(TensorStream, RoundTripsEveryDTypeAndShape) {
  ExpectRoundTrip<bool>({2}, {true, false});
  ExpectRoundTrip<int8_t>({2}, {-1, 2});
  ExpectRoundTrip<uint8_t>({1, 1, 1}, {255});
  ExpectRoundTrip<int16_t>({1}, {-300});
  ExpectRoundTrip<int32_t>({1, 2}, {1 << 30, -5});
  ExpectRoundTrip<int64_t>({1}, {int64_t{1} << 60});
  ExpectRoundTrip<double>({}, {0.1});
  ExpectRoundTrip<float>({0, 4}, {});
  const Tensor half(Shape{3}, DType::kBFloat16);
  EXPECT_EQ(Parse(StreamOf(half)).dtype(), DType::kBFloat16);
}

TEST(TensorStream, RoundTripsNestedLoD) {
  Tensor tensor = Tensor::FromValues<float>({3}, {1, 2, 3});
  tensor.set_lod({{0, 2}, {0, 1, 3}});
  EXPECT_EQ(Parse(StreamOf(tensor)).lod(), tensor.lod());
}

// What PaddlePaddle 2.6.2's op `save` writes for [0, 1, 2] with the lengths [2, 0] and [1, 2].
TEST(TensorStream, HasTheBytesOfFluidForSeveralLevels) {
  const std::string fluid =
      Little(uint32_t{0}, uint64_t{2}, uint64_t{24}, uint64_t{0}, uint64_t{2}, uint64_t{2},
             uint64_t{24}, uint64_t{0}, uint64_t{1}, uint64_t{3}, uint32_t{0}, int32_t{6}) +
      Desc(5, "\x03\x01") + Little(0.f, 1.f, 2.f);
  Tensor tensor = Tensor::FromValues<float>({3, 1}, {0, 1, 2});
  tensor.set_lod({{0, 2, 2}, {0, 1, 3}});
  EXPECT_EQ(StreamOf(tensor), fluid);
  EXPECT_EQ(Parse(fluid).lod(), tensor.lod());
}

TEST(TensorStream, ReadsOneTensorAfterAnother) {
  const std::string bytes = kGolden + kGolden;
  MemorySource source(bytes, "memory");
  ReadTensorStream(&source);
  EXPECT_EQ(source.offset(), static_cast<int64_t>(kGolden.size()));
  ReadTensorStream(&source);
  EXPECT_EQ(source.remaining(), 0);
}

TEST(TensorStream, RefusesToWriteWhatHasNoStorage) {
  StringSink sink;
  EXPECT_EQ(ErrorOf([&] { WriteTensorStream(Tensor(), &sink); }).code(),
            ErrorCode::kFailedPrecondition);
  const Tensor blocked({1, 3, 2, 2}, DType::kFloat32, Place::Cpu(), Layout::Blocked(8));
  EXPECT_EQ(ErrorOf([&] { WriteTensorStream(blocked, &sink); }).code(),
            ErrorCode::kFailedPrecondition);
}

// Each says how far it came, and of what there is less than expected.
TEST(TensorStream, RefusesTruncationAtEveryByte) {
  Tensor nested = Sample();
  nested.set_lod({{0, 2}, {0, 1, 3}});
  for (const std::string& whole : {kGolden, StreamOf(nested)}) {
    for (size_t size = 0; size < whole.size(); ++size) {
      SCOPED_TRACE(size);
      const Error error = ParseError(whole.substr(0, size));
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
      int at = -1;
      ASSERT_EQ(sscanf(error.what(), "memory, byte %d: ", &at), 1) << error.what();
      EXPECT_LE(at, static_cast<int>(size));
      const std::string message = error.what();
      const bool tells = message.find("expected") != std::string::npos ||
                         message.find("remain") != std::string::npos;
      EXPECT_TRUE(tells) << message;
    }
  }
}

// Whatever a flipped bit does, it takes no more memory than the file could fill.
TEST(TensorStream, SurvivesEveryFlippedBit) {
  const int64_t live = AllocatorOf(Place::Cpu()).statistics().live_bytes;
  for (size_t bit = 0; bit < kGolden.size() * 8; ++bit) {
    std::string bytes = kGolden;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    try {
      MemorySource source(bytes, "memory");
      ReadTensorStream(&source);
    } catch (const Error&) {
    }
  }
  EXPECT_EQ(AllocatorOf(Place::Cpu()).statistics().live_bytes, live);
  EXPECT_LT(AllocatorOf(Place::Cpu()).statistics().peak_bytes, 1 << 20);
}

TEST(TensorStream, SaysWhereWhatWasFoundAndWhatWasExpected) {
  const auto expect = [](const std::string& bytes, ErrorCode code, const std::string& message) {
    ExpectError([&] { Parse(bytes); }, code, "memory, byte " + message);
  };
  const auto corrupt = [&expect](const std::string& bytes, const std::string& message) {
    expect(bytes, ErrorCode::kDataLoss, message);
  };
  const std::string empty = Little(uint32_t{0}, uint64_t{0});
  corrupt(Little(uint32_t{7}), "0: version of the stream is 7, expected 0");
  corrupt(empty + Little(uint32_t{3}), "12: version of the tensor is 3, expected 0");
  corrupt(Little(uint32_t{0}, uint64_t{1} << 61),
          "4: 2305843009213693952 LoD levels, but the 0 bytes that remain hold at most 0");
  const auto level = [](uint64_t bytes) {
    return Little(uint32_t{0}, uint64_t{1}, bytes, uint64_t{0}, uint64_t{0});
  };
  corrupt(level(~uint64_t{7}),
          "12: LoD level 0 has 18446744073709551608 bytes, but only 16 remain");
  corrupt(level(12), "12: LoD level 0 has 12 bytes, expected a multiple of 8, at least 16");
  corrupt(empty + Little(uint32_t{0}, int32_t{-1}), "20: TensorDesc: expected -1 bytes, found 0");
  corrupt(empty + Little(uint32_t{0}, int32_t{1 << 30}) + "abc",
          "20: TensorDesc: expected 1073741824 bytes, found 3");
  corrupt(Head("\xff\xff"), "20: the 2 bytes are no TensorDesc");
  corrupt(
      Head(""),
      "20: the TensorDesc lacks required fields, or has unknown enumerators in them: data_type");
  // An enumerator that Fluid doesn't have, and one that only Skiff lacks.
  corrupt(
      Head(Desc(99, "\x01")),
      "20: the TensorDesc lacks required fields, or has unknown enumerators in them: data_type");
  expect(Head(Desc(23, "\x01")), ErrorCode::kUnimplemented,
         "20: data type COMPLEX64 is not supported");
  const std::string negative("\x08\x05\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13);
  corrupt(Head(negative), "33: negative dim in shape [-1]");
  const std::string huge_dim("\x10\x80\x80\x80\x80\x80\x80\x80\x80\x40", 10);
  corrupt(Head("\x08\x05" + huge_dim),
          "32: shape [4611686018427387904] has more than 281474976710656 elements, a dim "
          "of 0 counted as 1");
  corrupt(Head("\x08\x05" + huge_dim + huge_dim),
          "42: shape [4611686018427387904, 4611686018427387904] has more than 281474976710656 "
          "elements, a dim "
          "of 0 counted as 1");
  corrupt(Head("\x08\x05" + huge_dim + std::string("\x10\x00", 2)),
          "34: shape [4611686018427387904, 0] has more than 281474976710656 elements, a dim "
          "of 0 counted as 1");
  corrupt(Head(Desc(5, std::string(10, '\x01'))), "42: tensor of rank 10, expected at most 9");
  corrupt(Head(Desc(5, "\x7f\x7f")) + Little(1.f),
          "26: elements of float32 [127, 127]: expected 64516 bytes, found 4");
  corrupt(Head(Desc(0, "\x03")) + std::string("\0\1\2", 3), "26: bool of value 2, expected 0 or 1");
}

TEST(TensorStream, RefusesBadLoD) {
  const auto with_offsets = [](uint64_t a, uint64_t b) {
    return Little(uint32_t{0}, uint64_t{1}, uint64_t{16}, a, b, uint32_t{0}, int32_t{4}) +
           Desc(5, "\x01") + Little(1.f);
  };
  EXPECT_EQ(Parse(with_offsets(0, 1)).lod(), (LoD{{0, 1}}));
  ExpectError(
      [&] { Parse(with_offsets(1, 1)); }, ErrorCode::kDataLoss,
      "memory, byte 4: LoD level 0: expected at least 2 offsets, the first 0; found [1, 1]");
  ExpectError([&] { Parse(with_offsets(0, 2)); }, ErrorCode::kDataLoss,
              "memory, byte 4: LoD level 0 ends at 2: expected 1 (rows)");
  const auto odd = Little(uint32_t{0}, uint64_t{1}, uint64_t{17}) + std::string(40, '\0');
  ExpectError([&] { Parse(odd); }, ErrorCode::kDataLoss,
              "memory, byte 12: LoD level 0 has 17 bytes, expected a multiple of 8, at least 16");
}

TEST(TensorStream, RefusesBoolsOtherThanZeroAndOne) {
  EXPECT_EQ(Parse(Head(Desc(0, "\x02")) + std::string("\x00\x01", 2)).ToVector<bool>(),
            (std::vector<bool>{false, true}));
  const Error error = ParseError(Head(Desc(0, "\x02")) + std::string("\x00\x02", 2));
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_NE(std::string(error.what()).find("byte 25"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace skiff
