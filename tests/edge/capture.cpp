// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether a stream is being captured: what each answer of CUDA's runtime becomes, by a runtime that only answers.
#include <src/capture.hpp>

#include <rigel/detail/execution.hpp>

#include <tests/support/error.hpp>

#include <doctest/doctest.h>

using rigel::detail::Capture;

namespace {

struct Runtime {
  enum class Error { success, implicit, failure };
  enum class Status { none, active, invalid };
  static constexpr Error success = Error::success, implicit = Error::implicit;
  static constexpr Status none = Status::none, invalid = Status::invalid;

  Error error;
  Status status;
  mutable bool has_error = false;

  Error is_capturing(Status& of_stream) const {
    has_error = error != success;
    of_stream = status;
    return error;
  }
  void clear_error() const { has_error = false; }
  const char* text(Error) const { return "illegal address"; }
};

}  // namespace

TEST_CASE("capture: what the runtime's answers mean") {
  using Error = Runtime::Error;
  using Status = Runtime::Status;
  const auto of = [](Error error, Status status) {
    const Runtime runtime{error, status};
    Capture capture{};
    const auto caught = support::caught([&] { capture = rigel::detail::capture_by(runtime, "contract"); });
    CHECK(!runtime.has_error);
    return std::pair(caught, capture);
  };
  CHECK(of(Error::success, Status::none).second == Capture::none);
  CHECK(of(Error::success, Status::active).second == Capture::own);
  // With an error the status says nothing.
  for (const Status status : {Status::none, Status::active, Status::invalid}) {
    const auto [caught, capture] = of(Error::implicit, status);
    CHECK(caught.code == rigel::Code::ok);
    CHECK(capture == Capture::of_another);
    const auto failed = of(Error::failure, status).first;
    CHECK(failed.code == rigel::Code::device);
    CHECK(failed.message == "contract: cudaStreamIsCapturing: illegal address");
  }
  const auto invalid = of(Error::success, Status::invalid).first;
  CHECK(invalid.code == rigel::Code::device);
  CHECK(invalid.lacks({"contract: ", "capture", "invalid"}) == "");
}

TEST_CASE("capture: the legacy stream takes no work during a capture") {
  CHECK(!rigel::detail::is_captured(Capture::none, "contract"));
  CHECK(rigel::detail::is_captured(Capture::own, "contract"));
  const auto e = support::caught([] { (void)rigel::detail::is_captured(Capture::of_another, "contract"); });
  CHECK(e.code == rigel::Code::invalid_argument);
  CHECK(e.lacks({"contract: ", "legacy stream", "captured"}) == "");
}

TEST_CASE("capture: what waits is refused") {
  const auto refused = [](Capture capture) {
    return support::caught([&] { rigel::detail::require_no_capture(capture, "kmeans", "another one"); });
  };
  CHECK(refused(Capture::none).code == rigel::Code::ok);
  CHECK(refused(Capture::own).code == rigel::Code::invalid_argument);
  CHECK(refused(Capture::own).message ==
        "kmeans: the stream of the execution space is being captured, expected another one");
  CHECK(refused(Capture::of_another).lacks({"kmeans: ", "legacy stream"}) == "");
}

TEST_CASE("capture: a host captures nothing") {
  const Kokkos::DefaultHostExecutionSpace exec;
  CHECK(rigel::detail::capture_of(rigel::detail::execution_of(exec), "contract") == Capture::none);
  CHECK(!rigel::detail::is_captured(rigel::detail::execution_of(exec), "contract"));
  rigel::detail::require_no_capture(rigel::detail::execution_of(exec), "kmeans", "another one");
}
