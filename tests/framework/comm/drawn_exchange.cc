#include "tests/framework/comm/drawn_exchange.h"

#include <random>

namespace skiff {

DrawnExchange::DrawnExchange(int32_t size, int64_t most_bytes, uint64_t seed)
    : seed_(seed), bytes_(size, std::vector<int64_t>(size, -1)) {
  std::mt19937_64 random(seed);
  for (std::vector<int64_t>& of_sender : bytes_) {
    for (int64_t& bytes : of_sender) {
      if (random() % 3 == 0) continue;
      bytes = random() % 4 == 0 ? 0 : random() % (most_bytes + 1);
    }
  }
}

bool DrawnExchange::Run(Communicator* own) const {
  const int32_t rank = own->world().rank;
  const int32_t size = own->world().size;
  std::vector<std::vector<uint8_t>> sent(size), received(size);
  std::vector<OutMessage> out;
  std::vector<InMessage> in;
  for (int32_t other = 0; other < size; ++other) {
    if (const int64_t bytes = bytes_[rank][other]; bytes >= 0) {
      sent[other] = Contents(rank, other);
      out.push_back({.to = other, .data = sent[other].data(), .bytes = bytes});
    }
    if (const int64_t bytes = bytes_[other][rank]; bytes >= 0) {
      received[other].resize(bytes);
      in.push_back({.from = other, .data = received[other].data(), .bytes = bytes});
    }
  }
  own->Exchange(out, in, nullptr);
  bool has_all = true;
  for (const InMessage& message : in) {
    has_all = has_all && received[message.from] == Contents(message.from, rank);
  }
  return has_all;
}

int64_t DrawnExchange::BytesToOthers(int32_t rank) const {
  int64_t sum = 0;
  for (size_t other = 0; other < bytes_.size(); ++other) {
    const int64_t bytes = bytes_[rank][other];
    if (static_cast<int32_t>(other) != rank && bytes > 0) sum += bytes;
  }
  return sum;
}

std::vector<uint8_t> DrawnExchange::Contents(int32_t from, int32_t to) const {
  std::mt19937_64 random(seed_ * 10000 + from * 100 + to);
  std::vector<uint64_t> words(bytes_[from][to] / sizeof(uint64_t) + 1);
  for (uint64_t& word : words) word = random();
  const uint8_t* const begin = reinterpret_cast<const uint8_t*>(words.data());
  return {begin, begin + bytes_[from][to]};
}

}  // namespace skiff
