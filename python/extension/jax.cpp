// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Handlers of jax.ffi: XLA calls them, in its threads and without the GIL, with buffers of contiguous arrays and with attributes. The package
// has checked shapes and types when JAX traced the call. Leading dimensions of all operands are as many, and each is 1 or the batch's.
#include "jax.hpp"

#include "calls.hpp"
#include "texts.hpp"
#include "xla_ffi.hpp"

#include <cfenv>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace rigel::python {
namespace {

using Handle = nb::handle;

struct Refusal {
  rigel_code code;
  std::string message;
};
[[noreturn]] void refuse_call(std::string message, rigel_code code = RIGEL_INTERNAL) {
  throw Refusal{code, std::move(message)};
}

rigel_type type_of(xla::DataType type) {
  switch (type) {
    case xla::pred:
    case xla::u8: return RIGEL_U8;
    case xla::s8: return RIGEL_I8;
    case xla::s16: return RIGEL_I16;
    case xla::s32: return RIGEL_I32;
    case xla::s64: return RIGEL_I64;
    case xla::u32: return RIGEL_U32;
    case xla::u64: return RIGEL_U64;
    case xla::f16: return RIGEL_F16;
    case xla::bf16: return RIGEL_BF16;
    case xla::f32: return RIGEL_F32;
    case xla::f64: return RIGEL_F64;
  }
  refuse_call("a buffer of XLA has the type " + std::to_string(type));
}

// Semirings from text by the keys that the package gives them. They stay: programs of XLA's that name them may be called at any time.
struct Texts {
  std::mutex mutex;
  std::map<std::pair<std::string, rigel_type>, const rigel_semiring*> kept;
};
Texts& texts() {
  static Texts& all = *new Texts;
  return all;
}

// The handles of XLA's streams, which live as long as the process. They are not those of handle_of(), which needs the GIL.
std::shared_ptr<StreamHandle> handle_of_stream(std::int32_t device, void* stream) {
  struct Handles {
    std::mutex mutex;
    std::map<std::pair<std::int32_t, void*>, std::shared_ptr<StreamHandle>> all;
  };
  static Handles& handles = *new Handles;  // never destroyed: CUDA may be gone before
  const std::lock_guard lock(handles.mutex);
  std::shared_ptr<StreamHandle>& one = handles.all[{device, stream}];
  if (!one) {
    const auto fresh = std::make_shared<StreamHandle>();
    if (const rigel_code code = rigel_create(device, stream, &fresh->handle); code != RIGEL_OK)
      refuse_call(rigel_last_error(), code);
    one = fresh;
  }
  return one;
}

// One call of a handler.
class Call {
 public:
  Call(const xla::Frame& frame, bool is_on_cuda) : frame_(frame) {
    if (frame.size < sizeof frame || frame.operands.size < sizeof frame.operands ||
        frame.attributes.size < sizeof frame.attributes)
      refuse_call("XLA's call frame has " + std::to_string(frame.size) + " bytes, expected at least " +
                  std::to_string(sizeof frame));
    if (is_on_cuda) find_stream();
    for (std::int64_t i = 0; i < frame.results.count; ++i) results_.push_back(array_of(frame.results, i));
    for (std::int64_t i = 0; i < frame.operands.count; ++i) operands_.push_back(array_of(frame.operands, i));
    const Array& first = results_.front();
    batch_.dimensions = std::max(first.dimensions - 2, 0);
    std::copy_n(first.shape.begin(), batch_.dimensions, batch_.shape.begin());
    batch_.place = place_;
    for (const Array& one : operands_)
      for (int i = 0; i < std::max(one.dimensions - 2, 0); ++i) {
        const std::int64_t extent = one.shape[static_cast<std::size_t>(i)];
        if (one.dimensions != first.dimensions || (extent != 1 && extent != batch_.shape[static_cast<std::size_t>(i)]))
          refuse_call(described(one, "an operand") + " does not broadcast to " + described(first, "a result"));
      }
  }

  std::size_t operands() const { return operands_.size(); }
  const Array& operand(std::size_t i) const { return operands_.at(i); }
  Array& result(std::size_t i) { return results_.at(i); }
  const Batch& batch() const { return batch_; }

  /// An attribute's text; NULL for "".
  const char* text(std::string_view name) {
    const auto& span = *static_cast<const xla::Span*>(attribute(frame_.attributes, name, xla::string));
    if (span.size == 0) return nullptr;
    return names_.emplace_back(span.data, span.size).c_str();
  }
  std::int64_t integer(std::string_view name) const {
    const auto& value = *static_cast<const xla::Scalar*>(attribute(frame_.attributes, name, xla::scalar));
    if (value.type != xla::s64) refuse_call(std::string(name) + " is no int64");
    return *static_cast<const std::int64_t*>(value.value);
  }
  /// A dictionary of float64, for as long as the call runs.
  std::pair<const rigel_parameter*, std::int32_t> parameters(std::string_view name) {
    const auto& given = *static_cast<const xla::Attributes*>(attribute(frame_.attributes, name, xla::dictionary));
    std::vector<rigel_parameter>& list = parameters_.emplace_back();
    for (std::int64_t i = 0; i < given.count; ++i) {
      const auto& value = *static_cast<const xla::Scalar*>(given.list[i]);
      if (given.types[i] != xla::scalar || value.type != xla::f64) refuse_call(std::string(name) + " are no float64");
      names_.emplace_back(given.names[i]->data, given.names[i]->size);
      list.push_back({names_.back().c_str(), *static_cast<const double*>(value.value)});
    }
    return {list.data(), static_cast<std::int32_t>(list.size())};
  }
  rigel_options options() {
    rigel_options options = {};
    options.kernel = text("kernel_name");
    options.require = static_cast<std::uint32_t>(integer("require"));
    options.precision = static_cast<std::int32_t>(integer("precision"));
    return options;
  }

  /// Runs function(handle) for each part of the batch, on the host or on the stream.
  template <class Function>
  void run(Matrices& matrices, const Function& function) {
    rigel_handle* host = nullptr;
    if (!stream_)
      if (std::string message; const rigel_code code = find_thread_handle(host, message)) refuse_call(message, code);
    const Running running;
    std::unique_lock<std::recursive_mutex> turn;
    if (stream_) turn = std::unique_lock(stream_->turn);
    rigel_handle* const handle = stream_ ? stream_->handle : host;
    if (const rigel_code code = matrices.run([&] { return function(handle); }); code != RIGEL_OK)
      refuse_call(rigel_last_error(), code);
  }

 private:
  void find_stream() {
    const xla::Api& api = *frame_.api;
    if (api.size < sizeof api)
      refuse_call("XLA's interface of version " + std::to_string(api.version.major) + "." +
                      std::to_string(api.version.minor) + " does not tell the GPU of a call, expected a newer jaxlib",
                  RIGEL_UNSUPPORTED);
    xla::StreamArgs stream = {.size = sizeof stream, .extensions = nullptr, .context = frame_.context, .stream = nullptr};
    xla::DeviceArgs device = {.size = sizeof device, .extensions = nullptr, .context = frame_.context, .device = 0};
    if (api.get_stream(&stream) || api.get_device(&device)) refuse_call("XLA does not tell the stream of a call");
    place_ = {.device = device.device, .stream = stream.stream};
    stream_ = handle_of_stream(device.device, stream.stream);
  }

  Array array_of(const xla::Buffers& buffers, std::int64_t i) const {
    const xla::Buffer& buffer = *buffers.list[i];
    if (buffers.types[i] != 1 || buffer.size < sizeof buffer || buffer.rank > most_dimensions)
      refuse_call("an argument is no buffer of at most " + std::to_string(most_dimensions) + " dimensions");
    Array a;
    a.place = place_;
    a.data = buffer.data;
    a.type = type_of(buffer.type);
    a.is_bool = buffer.type == xla::pred;
    a.dimensions = static_cast<int>(buffer.rank);
    std::int64_t stride = 1;
    for (std::size_t d = static_cast<std::size_t>(buffer.rank); d-- > 0;) {
      a.shape[d] = buffer.extents[d];
      a.strides[d] = a.shape[d] <= 1 ? 0 : stride;
      stride *= a.shape[d];
    }
    return a;
  }

  static const void* attribute(const xla::Attributes& all, std::string_view name, xla::AttributeType type) {
    for (std::int64_t i = 0; i < all.count; ++i)
      if (std::string_view(all.names[i]->data, all.names[i]->size) == name) {
        if (all.types[i] != type) break;
        return all.list[i];
      }
    refuse_call("there is no attribute " + std::string(name) + " of type " + std::to_string(type));
  }

  const xla::Frame& frame_;
  Place place_;
  std::shared_ptr<StreamHandle> stream_;  // of a call on a GPU
  std::vector<Array> operands_, results_;
  Batch batch_;
  std::deque<std::string> names_;
  std::deque<std::vector<rigel_parameter>> parameters_;
};

// XLA's threads take numbers below the normal ones for 0, which Rigel's do not.
class DefaultArithmetic {
 public:
  DefaultArithmetic() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultArithmetic() { std::fesetenv(&saved_); }
  DefaultArithmetic(const DefaultArithmetic&) = delete;
  DefaultArithmetic& operator=(const DefaultArithmetic&) = delete;

 private:
  std::fenv_t saved_;
};

// ---- the functions: operands -> results ------------------------------------------------------------------------------

// a, b -> c. Attributes: semiring, or text: the key of one; parameters; may_cancel.
void contract(Call& call) {
  Matrices matrices(call.batch());
  const rigel_matrix *a = matrices.add(call.operand(0)), *b = matrices.add(call.operand(1)),
                     *c = matrices.add(call.result(0));
  rigel_contract_args args = {};
  args.size = sizeof args;
  args.semiring = call.text("semiring");
  if (const char* key = call.text("text")) {
    const std::lock_guard lock(texts().mutex);
    const auto found = texts().kept.find({key, a->type});
    if (found == texts().kept.end())
      refuse_call("this process has not traced the program, which has a semiring from text", RIGEL_NOT_FOUND);
    args.from_text = found->second;
  }
  std::tie(args.parameters, args.parameters_count) = call.parameters("parameters");
  args.may_cancel = call.integer("may_cancel") != 0;
  args.options = call.options();
  call.run(matrices, [&](rigel_handle* h) { return rigel_contract(h, &args, a, b, c); });
}

// a, b, dc and, of log_plus, c -> da, db.
void contract_backward(Call& call) {
  Matrices matrices(call.batch(), true);
  const rigel_matrix *a = matrices.add(call.operand(0)), *b = matrices.add(call.operand(1)),
                     *dc = matrices.add(call.operand(2)), *c = call.operands() > 3 ? matrices.add(call.operand(3)) : nullptr,
                     *da = matrices.add(call.result(0)), *db = matrices.add(call.result(1));
  rigel_contract_backward_args args = {};
  args.size = sizeof args;
  args.semiring = call.text("semiring");
  std::tie(args.parameters, args.parameters_count) = call.parameters("parameters");
  call.run(matrices, [&](rigel_handle* h) { return rigel_contract_backward(h, &args, a, b, c, dc, da, db); });
}

// x, z -> d.
void cdist(Call& call) {
  Matrices matrices(call.batch());
  const rigel_matrix *x = matrices.add(call.operand(0)), *z = matrices.add(call.operand(1)),
                     *d = matrices.add(call.result(0));
  rigel_cdist_args args = {};
  args.size = sizeof args;
  args.metric = call.text("metric");
  std::tie(args.parameters, args.parameters_count) = call.parameters("parameters");
  args.may_cancel = call.integer("may_cancel") != 0;
  args.options = call.options();
  call.run(matrices, [&](rigel_handle* h) { return rigel_cdist(h, &args, x, z, d); });
}

// weights, M x N, x, z, and ones, 1 x N -> sum_n weights(m,n)*sign(t)*|t|^(p-1), t = x(m,:) - z(n,:).
void cdist_gradient(Call& call) {
  Matrices matrices(call.batch());
  const rigel_matrix *weights = matrices.add(call.operand(0), 2, true), *x = matrices.add(call.operand(1), 2, true),
                     *z = matrices.add(call.operand(2), 2, true), *ones = matrices.add(call.operand(3)),
                     *out = matrices.add(call.result(0), 2, true);
  rigel_cdist_gradient_args args = {};
  args.size = sizeof args;
  const auto parameters = call.parameters("parameters");
  if (parameters.second == 1) args.p = parameters.first->value;
  args.may_cancel = call.integer("may_cancel") != 0;
  call.run(matrices, [&](rigel_handle* h) { return rigel_cdist_gradient(h, &args, weights, z, ones, x, out); });
}

// x, z, v -> sums.
void kernel_matvec(Call& call) {
  Matrices matrices(call.batch());
  const rigel_matrix *x = matrices.add(call.operand(0)), *z = matrices.add(call.operand(1)),
                     *v = matrices.add(call.operand(2)), *out = matrices.add(call.result(0));
  rigel_reduce_distances_args args = {};
  args.size = sizeof args;
  args.metric = call.text("metric");
  args.kernel = call.text("kernel");
  std::tie(args.parameters, args.parameters_count) = call.parameters("parameters");
  std::tie(args.hyperparameters, args.hyperparameters_count) = call.parameters("hyperparameters");
  args.may_cancel = call.integer("may_cancel") != 0;
  args.options = call.options();
  call.run(matrices, [&](rigel_handle* h) { return rigel_kernel_matvec(h, &args, x, z, v, out); });
}

// x, z, v, g -> dx, dz, dv.
void kernel_matvec_gradient(Call& call) {
  Matrices matrices(call.batch(), true);
  const rigel_matrix *x = matrices.add(call.operand(0)), *z = matrices.add(call.operand(1)),
                     *v = matrices.add(call.operand(2)), *g = matrices.add(call.operand(3)),
                     *dx = matrices.add(call.result(0)), *dz = matrices.add(call.result(1)),
                     *dv = matrices.add(call.result(2));
  rigel_matvec_gradient_args args = {};
  args.size = sizeof args;
  args.metric = call.text("metric");
  args.kernel = call.text("kernel");
  std::tie(args.parameters, args.parameters_count) = call.parameters("parameters");
  std::tie(args.hyperparameters, args.hyperparameters_count) = call.parameters("hyperparameters");
  args.may_cancel = call.integer("may_cancel") != 0;
  call.run(matrices, [&](rigel_handle* h) { return rigel_kernel_matvec_gradient(h, &args, x, z, v, g, dx, dz, dv); });
}

// x, z -> distances, indices, each M x k.
void nearest(Call& call) {
  Matrices matrices(call.batch());
  const rigel_matrix *x = matrices.add(call.operand(0)), *z = matrices.add(call.operand(1)),
                     *distances = matrices.add(call.result(0)), *indices = matrices.add(call.result(1));
  rigel_reduce_distances_args args = {};
  args.size = sizeof args;
  args.metric = call.text("metric");
  std::tie(args.parameters, args.parameters_count) = call.parameters("parameters");
  args.may_cancel = call.integer("may_cancel") != 0;
  args.reduction.reducer = static_cast<std::int32_t>(call.integer("reducer"));
  args.reduction.k = call.integer("k");
  args.reduction.exclude_self = call.integer("exclude_self") != 0;
  args.options = call.options();
  call.run(matrices, [&](rigel_handle* h) { return rigel_reduce_distances(h, &args, x, z, distances, indices); });
}

// ---- handlers --------------------------------------------------------------------------------------------------------

// What absl::Status says of a code of rigel.h.
std::int32_t status_of(rigel_code code) {
  switch (code) {
    case RIGEL_INVALID_ARGUMENT: return 3;
    case RIGEL_NOT_FOUND: return 5;
    case RIGEL_OUT_OF_MEMORY: return 8;
    case RIGEL_UNSUPPORTED:
    case RIGEL_UNSUPPORTED_ARCH: return 12;
    default: return 13;
  }
}

template <auto function, bool is_on_cuda>
xla::Error* handle(xla::Frame* frame) {
  if (frame->extensions && frame->extensions->type == xla::metadata_extension) {
    // XLA takes handlers of its own version, and of older ones for some time. Before 0.2 it does not tell its own here.
    xla::Metadata& metadata = *reinterpret_cast<xla::MetadataExtension*>(frame->extensions)->metadata;
    const xla::Version own =
        frame->api ? frame->api->version : xla::Version{.size = 0, .extensions = nullptr, .major = 0, .minor = 1};
    const bool is_older = own.major == xla::major_version && own.minor < xla::minor_version;
    metadata.version = {.size = sizeof metadata.version,
                        .extensions = nullptr,
                        .major = xla::major_version,
                        .minor = is_older ? own.minor : xla::minor_version};
    metadata.traits = 0;
    if (metadata.size >= sizeof metadata) metadata.state_type = 0;
    return nullptr;
  }
  if (frame->stage != xla::execute_stage) return nullptr;
  Refusal refusal = {};
  try {
    const DefaultArithmetic arithmetic;
    Call call(*frame, is_on_cuda);
    function(call);
    return nullptr;
  } catch (const Refusal& one) {
    refusal = one;
  } catch (const std::exception& error) {
    refusal = {RIGEL_INTERNAL, error.what()};
  }
  const std::string message = without_prefix(refusal.message);
  xla::ErrorArgs args = {
      .size = sizeof args, .extensions = nullptr, .message = message.c_str(), .code = status_of(refusal.code)};
  return frame->api->create_error(&args);
}

template <auto function>
void add(nb::dict& all, const char* name) {
  const auto capsule = [](xla::Handler* handler) { return nb::capsule(reinterpret_cast<void*>(handler)); };
  all[name] = nb::make_tuple(capsule(handle<function, false>), capsule(handle<function, true>));
}

// {name: (the handler for hosts, the one for GPUs)}.
nb::dict jax_handlers() {
  nb::dict all;
  add<contract>(all, "contract");
  add<contract_backward>(all, "contract_backward");
  add<cdist>(all, "cdist");
  add<cdist_gradient>(all, "cdist_gradient");
  add<kernel_matvec>(all, "kernel_matvec");
  add<kernel_matvec_gradient>(all, "kernel_matvec_gradient");
  add<nearest>(all, "nearest");
  return all;
}

// ---- what the package checks calls by --------------------------------------------------------------------------------

// A batch of no matrices of a type, of which calls check extents and types alone.
nb::object nowhere(Handle rows, Handle columns, rigel_type type, Flag is_bool) {
  using Code = nb::dlpack::dtype_code;
  const bool is_float = type == RIGEL_F16 || type == RIGEL_F32 || type == RIGEL_F64;
  const bool is_signed = type == RIGEL_I8 || type == RIGEL_I16 || type == RIGEL_I32 || type == RIGEL_I64;
  const Code code = is_bool              ? Code::Bool
                    : type == RIGEL_BF16 ? Code::Bfloat
                    : is_float           ? Code::Float
                    : is_signed          ? Code::Int
                                         : Code::UInt;
  const nb::dlpack::dtype of = {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * size_of(type)), 1};
  const std::size_t shape[] = {0, number_of<std::size_t>(rows, "rows"), number_of<std::size_t>(columns, "columns")};
  return nb::cast(nb::ndarray<>(nullptr, 3, shape, nb::none(), nullptr, of));
}

// Notes a semiring for elements of a type, by a key. The package keeps the text, and with it the semiring.
void keep_text(Handle key, Handle text, rigel_type type) {
  rigel_contract_args args = {};
  set_semiring(args, text, type);
  const std::string name = text_of(key, "key");
  const std::lock_guard lock(texts().mutex);
  texts().kept[{name, type}] = args.from_text;
}

}  // namespace

void define_jax(nb::module_& m) {
  define(m, "jax_handlers", jax_handlers);
  define(m, "nowhere", nowhere);
  define(m, "keep_text", keep_text);
}

}  // namespace rigel::python
