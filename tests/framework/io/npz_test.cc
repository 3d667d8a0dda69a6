#include "framework/io/npz.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/framework/io/temp_directory.h"

namespace skiff {
namespace {

// A version 1.0 array as NumPy writes it.
std::string Npy(const std::string& dict, const std::string& data) {
  std::string text = dict;
  text.resize((10 + dict.size() + 1 + 63) / 64 * 64 - 11, ' ');
  text += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  AppendNumber(static_cast<uint16_t>(text.size()), &bytes);
  return bytes + text + data;
}

std::string Dict(const std::string& descr, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
}

Tensor Parse(const std::string& bytes) {
  MemorySource source(bytes, "memory");
  return ReadNpy(&source);
}

ErrorCode CodeOf(const std::string& bytes) {
  return ErrorOf([&] { Parse(bytes); }).code();
}

const std::string kInts = std::string("\x01\0\0\0\x02\0\0\0", 8);

TEST(Npy, ReadsTheBytesOfNumpy) {
  const Tensor tensor = Parse(Npy(Dict("<i4", "(1, 2)"), kInts));
  EXPECT_EQ(tensor.shape(), Shape({1, 2}));
  EXPECT_EQ(tensor.ToVector<int32_t>(), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(Parse(Npy(Dict("<i8", "()"), kInts)).shape(), Shape());
  EXPECT_EQ(Parse(Npy(Dict("<f4", "(2,)"), kInts)).shape(), Shape({2}));
  EXPECT_EQ(Parse(Npy(Dict("<f8", "(0, 7)"), "")).shape(), Shape({0, 7}));
  EXPECT_EQ(Parse(Npy(Dict("|b1", "(2,)"), std::string("\0\1", 2))).ToVector<bool>(),
            (std::vector<bool>{false, true}));
}

TEST(Npy, ReadsKeysInAnyOrderAndTheLongHeader) {
  const std::string dict = "{\"shape\":(2,),\"descr\":\"<i4\",\"fortran_order\":False}\n";
  for (char version : {2, 3}) {
    std::string bytes = std::string("\x93NUMPY", 6) + version + '\0';
    AppendNumber(static_cast<uint32_t>(dict.size()), &bytes);
    EXPECT_EQ(Parse(bytes + dict + kInts).ToVector<int32_t>(), (std::vector<int32_t>{1, 2}));
  }
}

TEST(Npy, WritesTheBytesOfNumpy) {
  const TempDirectory directory;
  WriteNpyFile(directory / "a.npy", Tensor::FromValues<int32_t>({2}, {1, 2}));
  EXPECT_EQ(BytesOf(directory / "a.npy"), Npy(Dict("<i4", "(2,)"), kInts));
  EXPECT_EQ(ReadNpyFile(directory / "a.npy").ToVector<int32_t>(), (std::vector<int32_t>{1, 2}));
}

TEST(Npy, RefusesTruncationAtEveryByte) {
  const std::string bytes = Npy(Dict("<i4", "(2,)"), kInts);
  for (size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(size);
    EXPECT_EQ(CodeOf(bytes.substr(0, size)), ErrorCode::kDataLoss);
  }
  EXPECT_EQ(CodeOf(bytes + "x"), ErrorCode::kDataLoss);
}

TEST(Npy, SurvivesEveryFlippedBit) {
  const std::string bytes = Npy(Dict("<i4", "(2,)"), kInts);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    try {
      Parse(flipped);
    } catch (const Error&) {
    }
  }
}

TEST(Npy, RefusesWhatItDoesNotRead) {
  EXPECT_EQ(CodeOf(Npy("{'descr': '<i4', 'fortran_order': True, 'shape': (2,), }", kInts)),
            ErrorCode::kUnimplemented);
  for (const char* descr : {">i4", "<c8", "|O", "<U2", "<u4", "i4"}) {
    SCOPED_TRACE(descr);
    EXPECT_EQ(CodeOf(Npy(Dict(descr, "(2,)"), kInts)), ErrorCode::kUnimplemented);
  }
  EXPECT_EQ(
      CodeOf(Npy("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (2,), }", kInts)),
      ErrorCode::kUnimplemented);
}

TEST(Npy, RefusesMalformedHeaders) {
  const std::vector<std::string> dicts = {
      "",
      "{}",
      "[]",
      "{'descr': '<i4', 'fortran_order': False}",
      Dict("<i4", "(2)"),
      Dict("<i4", "(2,, )"),
      Dict("<i4", "(2 1)"),
      Dict("<i4", "(-2,)"),
      Dict("<i4", "(2L,)"),
      Dict("<i4", "(9223372036854775808,)"),
      Dict("<i4", "(9223372036854775807,)"),
      Dict("<i4", "(4294967296, 4294967296)"),
      Dict("<i4", "(1,1,1,1,1,1,1,1,1,2)"),
      Dict("<i4", "2"),
      Dict("<i4", "(3,)"),
      Dict("<i4", "(1,)"),
      "{'descr': '<i4', 'fortran_order': 0, 'shape': (2,), }",
      "{'descr': '<i4', 'descr': '<i4', 'fortran_order': False, 'shape': (2,), }",
      "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), 'x': 1}",
      "{'descr': '<i4', 'fortran_order': False 'shape': (2,)}",
      Dict("<i4", "(2,)") + "x",
  };
  for (const std::string& dict : dicts) {
    SCOPED_TRACE(dict);
    EXPECT_EQ(CodeOf(Npy(dict, kInts)), ErrorCode::kDataLoss);
  }
  EXPECT_EQ(CodeOf(Npy(Dict("|b1", "(1,)"), "\x02")), ErrorCode::kDataLoss);
}

TensorMap Samples() {
  TensorMap tensors;
  tensors["bool"] = Tensor::FromValues<bool>({2}, {true, false});
  tensors["int8"] = Tensor::FromValues<int8_t>({1}, {-1});
  tensors["uint8"] = Tensor::FromValues<uint8_t>({1}, {200});
  tensors["int16"] = Tensor::FromValues<int16_t>({1}, {-300});
  tensors["scope/int32"] = Tensor::FromValues<int32_t>({1, 3}, {1, 2, 3});
  tensors["int64"] = Tensor::FromValues<int64_t>({}, {int64_t{1} << 40});
  tensors["float32"] = Tensor::FromValues<float>({1000}, std::vector<float>(1000, 0.5f));
  tensors["float64"] = Tensor::FromValues<double>({0, 2}, {});
  return tensors;
}

void ExpectSame(const TensorMap& found, const TensorMap& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(found.contains(name));
    const Tensor& other = found.at(name);
    EXPECT_EQ(other.dtype(), tensor.dtype());
    EXPECT_EQ(other.shape(), tensor.shape());
    if (tensor.byte_count() == 0) continue;
    EXPECT_EQ(
        std::memcmp(other.raw_data(), tensor.raw_data(), static_cast<size_t>(tensor.byte_count())),
        0);
  }
}

TEST(Npz, RoundTripsStoredAndDeflated) {
  const TempDirectory directory;
  for (bool compress : {false, true}) {
    WriteNpz(directory / "a.npz", Samples(), compress);
    ExpectSame(ReadNpz(directory / "a.npz"), Samples());
    EXPECT_EQ(NamesIn(directory.path()), std::vector<std::string>{"a.npz"});
  }
}

TEST(Npz, RoundTripsNothing) {
  const TempDirectory directory;
  WriteNpz(directory / "a.npz", {});
  EXPECT_TRUE(ReadNpz(directory / "a.npz").empty());
}

TEST(Npz, RepeatsItsBytes) {
  const TempDirectory directory;
  WriteNpz(directory / "a.npz", Samples());
  WriteNpz(directory / "b.npz", Samples());
  EXPECT_EQ(BytesOf(directory / "a.npz"), BytesOf(directory / "b.npz"));
}

TEST(Npz, RefusesTruncation) {
  const TempDirectory directory;
  WriteNpz(directory / "a.npz", Samples(), true);
  const std::string bytes = BytesOf(directory / "a.npz");
  for (size_t size = 0; size < bytes.size(); size += 7) {
    SCOPED_TRACE(size);
    PutBytes(directory / "b.npz", bytes.substr(0, size));
    EXPECT_THROW(ReadNpz(directory / "b.npz"), Error);
  }
}

TEST(Npz, NoticesEveryFlippedByteOfTheData) {
  const TempDirectory directory;
  WriteNpz(directory / "a.npz", {{"x", Tensor::FromValues<int32_t>({2}, {1, 2})}});
  const std::string bytes = BytesOf(directory / "a.npz");
  const size_t data = bytes.find(kInts);
  ASSERT_NE(data, std::string::npos);
  for (size_t i = 0; i < bytes.size(); ++i) {
    SCOPED_TRACE(i);
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x55);
    PutBytes(directory / "b.npz", flipped);
    const auto read = [&] { ReadNpz(directory / "b.npz"); };
    if (i >= data && i < data + kInts.size()) {
      EXPECT_EQ(ErrorOf(read).code(), ErrorCode::kDataLoss);
      continue;
    }
    try {
      read();
    } catch (const Error&) {
    }
  }
}

TEST(Npz, RefusesMoreThanTheLimit) {
  const TempDirectory directory;
  WriteNpz(directory / "a.npz", Samples(), true);
  EXPECT_EQ(ErrorOf([&] { ReadNpz(directory / "a.npz", 1000); }).code(), ErrorCode::kOutOfRange);
}

TEST(Npz, RefusesWhatIsNoArchive) {
  const TempDirectory directory;
  EXPECT_EQ(ErrorOf([&] { ReadNpz(directory / "a.npz"); }).code(), ErrorCode::kNotFound);
  PutBytes(directory / "a.npz", "no archive");
  EXPECT_EQ(ErrorOf([&] { ReadNpz(directory / "a.npz"); }).code(), ErrorCode::kDataLoss);
  PutBytes(directory / "a.npz", "");
  EXPECT_EQ(ErrorOf([&] { ReadNpz(directory / "a.npz"); }).code(), ErrorCode::kDataLoss);
}

TEST(Npz, RefusesToWriteWhatNumpyLacks) {
  const TempDirectory directory;
  const auto code_of = [&](const Tensor& tensor) {
    return ErrorOf([&] { WriteNpz(directory / "a.npz", {{"x", tensor}}); }).code();
  };
  EXPECT_EQ(code_of(Tensor({1}, DType::kBFloat16)), ErrorCode::kUnimplemented);
  EXPECT_EQ(code_of(Tensor()), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(ErrorOf([&] { WriteNpz(directory / "no/a.npz", Samples()); }).code(), ErrorCode::kIo);
  EXPECT_TRUE(NamesIn(directory.path()).empty());
}

}  // namespace
}  // namespace skiff
