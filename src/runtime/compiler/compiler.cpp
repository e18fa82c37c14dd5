// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Source → LLVM module (Clang, in process) → linked with the loops' bitcode, which is optimised already → inlined there → object file →
// loaded by ORC.
// For a GPU: source → LLVM module → optimised with the functions it calls → inlined in one kernel, which is optimised already → PTX.
#include "interface.hpp"

#include "bitcode.hpp"

#include <clang/Basic/DiagnosticOptions.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Lex/PreprocessorOptions.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringSet.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/ExecutionEngine/Orc/AbsoluteSymbols.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/DiagnosticHandler.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/Linker/Linker.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/ArgumentPromotion.h>
#include <llvm/Transforms/IPO/FunctionAttrs.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/IPO/Inliner.h>
#include <llvm/Transforms/IPO/Internalize.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Utils/BypassSlowDivision.h>
#include <llvm/Transforms/Utils/IntegerDivision.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <elf.h>
#include <pthread.h>
#include <signal.h>
#include <zstd.h>

extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

// The library's first byte, by the linker.
extern "C" __attribute__((visibility("hidden"))) const Elf64_Ehdr rigel_first_byte __asm__("__ehdr_start");

namespace rigel::runtime {

namespace {

void initialise() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

constexpr const char* target = "x86_64-pc-linux-gnu";
constexpr const char* target_of_gpus = "nvptx64-nvidia-cuda";
// The version of PTX, that of CUDA 11.8, which is the first to know sm_90, and of 12.0, the first to know sm_90a: drivers since then take
// it.
const char* features_of(llvm::StringRef level) { return level == "sm_90a" ? "+ptx80" : "+ptx78"; }

constexpr llvm::StringRef kernel_name = "rigel_text_kernel";

bool is_gpu(llvm::StringRef level) { return level.starts_with("sm_"); }

// The name of a level's processor, as Clang and LLVM know it.
std::string processor_of(llvm::StringRef level) { return is_gpu(level) ? level.str() : ("x86-64-" + level).str(); }

int give(const std::string& text, RigelBytes* bytes, int code) {
  bytes->data = static_cast<char*>(std::malloc(text.size() + 1));
  bytes->size = bytes->data ? text.size() : 0;
  if (bytes->data) std::memcpy(bytes->data, text.c_str(), text.size() + 1);
  return code;
}

// Keeps Clang's errors, each as "file:line:message", with the file and the line of #line directives.
class Messages : public clang::DiagnosticConsumer {
 public:
  explicit Messages(std::string& text) : text_(text) {}
  void HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& diagnostic) override {
    DiagnosticConsumer::HandleDiagnostic(level, diagnostic);
    if (level < clang::DiagnosticsEngine::Error) return;
    llvm::SmallString<128> message;
    diagnostic.FormatDiagnostic(message);
    std::string place = "text.cpp:0";
    if (diagnostic.hasSourceManager() && diagnostic.getLocation().isValid()) {
      const clang::PresumedLoc at = diagnostic.getSourceManager().getPresumedLoc(diagnostic.getLocation());
      if (at.isValid()) place = std::string(at.getFilename()) + ":" + std::to_string(at.getLine());
    }
    text_ += place + ":" + message.str().str() + "\n";
  }

 private:
  std::string& text_;
};

// Keeps LLVM's errors. Without this, LLVM prints what it has to say, and ends the program after an error.
class Findings : public llvm::DiagnosticHandler {
 public:
  explicit Findings(std::string& text) : text_(text) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& diagnostic) override {
    if (diagnostic.getSeverity() != llvm::DS_Error) return true;
    llvm::raw_string_ostream stream(text_);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    stream << "text.cpp:0:";
    diagnostic.print(printer);
    stream << "\n";
    return true;
  }

 private:
  std::string& text_;
};

std::unique_ptr<llvm::Module> front_end(llvm::StringRef source, llvm::StringRef level, llvm::LLVMContext& context,
                                        std::string& messages) {
  const std::string cpu = processor_of(level);
  llvm::SmallVector<const char*> arguments = {"-triple",
                                              is_gpu(level) ? target_of_gpus : target,
                                              "-target-cpu",
                                              cpu.c_str(),
                                              "-O2",
                                              "-disable-llvm-passes",
                                              "-x",
                                              "c++",
                                              "-std=c++20",
                                              "-ffp-contract=off",
                                              "-fwrapv",
                                              "-fno-strict-float-cast-overflow",
                                              "-nostdsysteminc",
                                              "-nobuiltininc",
                                              "-fbracket-depth",
                                              "512",
                                              "-emit-llvm-only"};
  if (!is_gpu(level)) arguments.append({"-mrelocation-model", "pic", "-pic-level", "2"});
  arguments.push_back("text.cpp");
  auto invocation = std::make_shared<clang::CompilerInvocation>();
  clang::DiagnosticOptions options;
  Messages consumer(messages);
  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  files->addFile("text.cpp", 0, llvm::MemoryBuffer::getMemBuffer(source, "text.cpp"));
  auto diagnostics = clang::CompilerInstance::createDiagnostics(*files, options, &consumer, false);
  if (!clang::CompilerInvocation::CreateFromArgs(*invocation, arguments, *diagnostics)) return nullptr;
  invocation->getDiagnosticOpts().ShowCarets = false;  // Clang would print how many errors there were
  clang::CompilerInstance compiler(invocation);
  compiler.setVirtualFileSystem(files);
  compiler.createDiagnostics(&consumer, false);
  clang::EmitLLVMOnlyAction action(&context);
  if (!compiler.ExecuteAction(action)) return nullptr;
  return action.takeModule();
}

std::unique_ptr<llvm::TargetMachine> machine_for(llvm::StringRef level, std::string& messages) {
  const bool for_gpu = is_gpu(level);
  const llvm::Triple triple(for_gpu ? target_of_gpus : target);
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, messages);
  if (!found) return nullptr;
  // More would only number values twice in PTX, as ptxas does again.
  const auto effort = for_gpu ? llvm::CodeGenOptLevel::Default : llvm::CodeGenOptLevel::Aggressive;
  return std::unique_ptr<llvm::TargetMachine>(
      found->createTargetMachine(triple, processor_of(level), for_gpu ? features_of(level) : "", llvm::TargetOptions(),
                                 llvm::Reloc::PIC_, llvm::CodeModel::Small, effort));
}

// Leaves two passes before the emission of PTX out, which take time quadratic in additions of integers: two thirds of it in a kernel of
// sums of these. Loops of kernels gain nothing by them.
class Gate : public llvm::OptPassGate {
 public:
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef) const override {
    return pass != "slsr" && pass != "nary-reassociate";
  }
  bool isEnabled() const override { return true; }
};

// LLVM's passes and their analyses for a target.
class Passes {
 public:
  explicit Passes(llvm::TargetMachine& machine) : builder(&machine, tuning()) {
    builder.registerModuleAnalyses(modules_);
    builder.registerCGSCCAnalyses(components_);
    builder.registerFunctionAnalyses(functions_);
    builder.registerLoopAnalyses(loops_);
    builder.crossRegisterProxies(loops_, functions_, components_, modules_);
  }
  void run(llvm::Module& module) { all.run(module, modules_); }

  llvm::PassBuilder builder;
  llvm::ModulePassManager all;

 private:
  static llvm::PipelineTuningOptions tuning() {
    llvm::PipelineTuningOptions options;
    options.LoopVectorization = true;
    options.SLPVectorization = true;
    return options;
  }

  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::CGSCCAnalysisManager components_;
  llvm::ModuleAnalysisManager modules_;
};

// Keeps some of what a text defines and what that needs, and optimises all of it.
void optimise(llvm::Module& module, llvm::TargetMachine& machine, const llvm::StringSet<>& kept) {
  Passes passes(machine);
  passes.all.addPass(llvm::InternalizePass([&](const llvm::GlobalValue& value) { return kept.contains(value.getName()); }));
  passes.all.addPass(llvm::GlobalDCEPass());
  passes.all.addPass(passes.builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3));
  passes.run(module);
}

// Inlines what the text says in loops, which are optimised already, and then what it calls, such as a power, whose loops over lanes are
// unrolled. All that LLVM has would take twice as long, and the code would be no faster. Loops of gradients gain a fourteenth by being
// unrolled, others nothing.
void complete_loops(llvm::Module& module, llvm::TargetMachine& machine, const llvm::StringSet<>& kept, bool unrolled) {
  Passes passes(machine);
  passes.all.addPass(llvm::InternalizePass([&](const llvm::GlobalValue& value) { return kept.contains(value.getName()); }));
  passes.all.addPass(llvm::AlwaysInlinerPass());
  passes.all.addPass(llvm::GlobalDCEPass());
  llvm::FunctionPassManager each;
  each.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  each.addPass(llvm::EarlyCSEPass(true));
  each.addPass(llvm::InstCombinePass());
  each.addPass(llvm::SimplifyCFGPass());
  each.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LoopFullUnrollPass()));
  each.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  each.addPass(llvm::EarlyCSEPass(true));
  each.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
  each.addPass(llvm::InstCombinePass());
  llvm::CGSCCPassManager called_first;
  called_first.addPass(llvm::InlinerPass());
  called_first.addPass(llvm::PostOrderFunctionAttrsPass());
  called_first.addPass(llvm::ArgumentPromotionPass());  // small batches
  called_first.addPass(llvm::createCGSCCToFunctionPassAdaptor(std::move(each), true, true));
  passes.all.addPass(llvm::createModuleToPostOrderCGSCCPassAdaptor(std::move(called_first)));
  passes.all.addPass(llvm::GlobalDCEPass());
  if (unrolled) {
    llvm::FunctionPassManager after;
    after.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(3)));
    after.addPass(llvm::InstCombinePass());
    after.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
    passes.all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(after)));
  }
  passes.run(module);
}

// Inlines what the text says in a kernel, and cleans up where it stands now. Both are optimised already, and ptxas does the rest.
void complete(llvm::Module& module, llvm::TargetMachine& machine) {
  Passes passes(machine);
  passes.all.addPass(llvm::InternalizePass([](const llvm::GlobalValue& value) { return value.getName() == kernel_name; }));
  passes.all.addPass(llvm::AlwaysInlinerPass());
  passes.all.addPass(llvm::GlobalDCEPass());
  llvm::FunctionPassManager each;
  each.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  each.addPass(llvm::EarlyCSEPass());
  // What a power computes of its exponent alone leaves the loops.
  each.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
  each.addPass(llvm::InstCombinePass());
  each.addPass(llvm::SimplifyCFGPass());
  passes.all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(each)));
  passes.all.addPass(llvm::GlobalDCEPass());  // functions whose calls an exponent that is known has removed
  passes.run(module);
}

// Bitcode as it was before it was compressed. Nothing if that fails.
std::string unpacked(const Bitcode& bitcode) {
  const std::size_t packed = bitcode.end - bitcode.begin;
  const unsigned long long size = ZSTD_getFrameContentSize(bitcode.begin, packed);
  if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR) return {};
  std::string bytes(size, '\0');
  return ZSTD_decompress(bytes.data(), size, bitcode.begin, packed) == size ? bytes : std::string();
}
// Bitcode, which stays in memory once it is unpacked: there are a dozen.
llvm::MemoryBufferRef buffer_of(const Bitcode& bitcode) {
  static std::mutex mutex;
  static auto* const all = new std::map<const char*, std::string>;  // by where it is compressed
  const std::lock_guard lock(mutex);
  std::string& bytes = (*all)[bitcode.begin];
  if (bytes.empty()) bytes = unpacked(bitcode);
  return {bytes, bitcode.element};
}
const Bitcode* bitcode_of(llvm::StringRef element, llvm::StringRef level) {
  for (const Bitcode& one : bitcodes())
    if (element == one.element && level == one.level) return &one;
  return nullptr;
}

using Linked = llvm::Expected<std::unique_ptr<llvm::Module>>;
llvm::Error failure(const std::string& message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message.c_str());
}

// The functions that a table of a module has, in its order.
void add_kernels(llvm::Constant* table, llvm::SmallVectorImpl<llvm::Function*>& all) {
  if (auto* const function = llvm::dyn_cast<llvm::Function>(table->stripPointerCasts())) return all.push_back(function);
  for (unsigned i = 0; llvm::Constant* const part = table->getAggregateElement(i); ++i) add_kernels(part, all);
}

// So that functions for different architectures may be inlined into each other.
void forget_processors(llvm::Module& module) {
  for (llvm::Function& function : module) {
    function.removeFnAttr("target-cpu");
    function.removeFnAttr("target-features");
  }
}

// What the text defines, optimised with the functions it calls.
llvm::Error add_functions(llvm::Module& own, llvm::TargetMachine& machine) {
  llvm::StringSet<> kept;
  for (const llvm::Function& function : own)
    if (!function.isDeclaration() && !function.hasLocalLinkage()) kept.insert(function.getName());
  auto functions = llvm::getLazyBitcodeModule(buffer_of(*bitcode_of("functions", "gpu")), own.getContext());
  if (!functions) return functions.takeError();
  if (llvm::Linker::linkModules(own, std::move(*functions), llvm::Linker::LinkOnlyNeeded))
    return failure("the text and its functions do not link");
  forget_processors(own);
  optimise(own, machine, kept);
  return llvm::Error::success();
}

// Whether accumulators have several fields: their steps are named by the number.
bool sums_fields(const llvm::Module& module) {
  return module.getFunction("rigel_text_step_2") || module.getFunction("rigel_text_step_3") ||
         module.getFunction("rigel_text_step_4");
}

// A kernel's divisions of 64 bits become ones of 32, where the numbers fit, and else loops. For the others ptxas calls a function, and the
// driver's linker then has each copy to shared memory move the descriptor of global memory to uniform registers again.
void divide_without_calls(llvm::Function& kernel) {
  const auto divides = [](const llvm::Instruction& i) {
    const auto* const binary = llvm::dyn_cast<llvm::BinaryOperator>(&i);
    return binary && binary->isIntDivRem() && binary->getType()->isIntegerTy(64) &&
           !llvm::isa<llvm::Constant>(binary->getOperand(1));
  };
  llvm::SmallVector<llvm::BasicBlock*> blocks;
  for (llvm::BasicBlock& block : kernel)
    if (llvm::any_of(block, divides)) blocks.push_back(&block);
  for (llvm::BasicBlock* const block : blocks) llvm::bypassSlowDivision(block, {{64, 32}});
  llvm::SmallVector<llvm::BinaryOperator*> left;
  for (llvm::Instruction& i : llvm::instructions(kernel))
    if (divides(i)) left.push_back(llvm::cast<llvm::BinaryOperator>(&i));
  for (llvm::BinaryOperator* const one : left) {
    const bool is_quotient = one->getOpcode() == llvm::Instruction::UDiv || one->getOpcode() == llvm::Instruction::SDiv;
    is_quotient ? llvm::expandDivision(one) : llvm::expandRemainder(one);
  }
}

// What the text defines, one kernel for a GPU, and what this needs: the bitcode of no other kernel is read.
Linked with_kernel(std::unique_ptr<llvm::Module> own, const RigelSource& source, llvm::TargetMachine& machine) {
  if (llvm::Error error = add_functions(*own, machine)) return error;
  auto kernels = llvm::getLazyBitcodeModule(buffer_of(*bitcode_of(source.element, "gpu")), own->getContext());
  if (!kernels) return kernels.takeError();
  const llvm::GlobalVariable* const table = (*kernels)->getNamedGlobal("rigel_text_kernels");
  const llvm::GlobalVariable* const layout = (*kernels)->getNamedGlobal("rigel_text_layout");
  llvm::SmallVector<llvm::Function*> all;
  if (table && table->hasInitializer()) add_kernels(const_cast<llvm::Constant*>(table->getInitializer()), all);
  const auto* const of_bitcode =
      layout && layout->hasInitializer() ? llvm::dyn_cast<llvm::ConstantInt>(layout->getInitializer()) : nullptr;
  if (source.kernel >= all.size() || !of_bitcode || (source.layout != 0 && of_bitcode->getZExtValue() != source.layout))
    return failure("the kernels for texts are of another build of Rigel");
  const std::string name = all[source.kernel]->getName().str();
  auto* const kernel =
      llvm::Function::Create(all[source.kernel]->getFunctionType(), llvm::GlobalValue::ExternalLinkage, name, *own);
  kernel->setCallingConv(all[source.kernel]->getCallingConv());
  if (llvm::Linker::linkModules(*own, std::move(*kernels), llvm::Linker::LinkOnlyNeeded))
    return failure("the text and its kernel do not link");
  llvm::Function& linked = *own->getFunction(name);
  linked.setName(kernel_name);
  if (sums_fields(*own)) divide_without_calls(linked);
  forget_processors(*own);
  complete(*own, machine);
  return own;
}

// Declares what another module has, unless this one has it.
void declare(llvm::Module& module, const llvm::GlobalValue* value) {
  if (!value || module.getNamedValue(value->getName())) return;
  if (auto* const type = llvm::dyn_cast<llvm::FunctionType>(value->getValueType()))
    module.getOrInsertFunction(value->getName(), type);
  else
    module.getOrInsertGlobal(value->getName(), value->getValueType());
}

// What the text defines, the roots, and what these need: the bitcode of no other loop is read.
Linked with_loops(std::unique_ptr<llvm::Module> own, const RigelSource& source, llvm::TargetMachine& machine) {
  auto loops = llvm::getLazyBitcodeModule(buffer_of(*bitcode_of(source.element, source.level)), own->getContext());
  if (!loops) return loops.takeError();
  llvm::StringSet<> kept;
  for (std::size_t i = 0; i < source.root_count; ++i) {
    kept.insert(source.roots[i]);
    declare(*own, (*loops)->getNamedValue(source.roots[i]));
  }
  // Epilogues and monoids have loops of their own, which nothing has optimised.
  const llvm::Function* const root = own->getFunction(source.roots[0]);
  const bool has_loops = root && !root->isDeclaration();
  if (llvm::Linker::linkModules(*own, std::move(*loops), llvm::Linker::LinkOnlyNeeded))
    return failure("the text and the loops do not link");
  if (has_loops)
    optimise(*own, machine, kept);
  else
    complete_loops(*own, machine, kept, llvm::StringRef(source.element).starts_with("gradient_"));
  return own;
}

int compile_here(const RigelSource* source, RigelBytes* object, RigelBytes* messages) {
  initialise();
  std::string text;
  Gate gate;
  llvm::LLVMContext context;
  context.setDiagnosticHandler(std::make_unique<Findings>(text));
  const bool for_gpu = is_gpu(source->level);
  if (for_gpu && source->element[0] == 'i') context.setOptPassGate(gate);
  if (for_gpu && !bitcode_of(source->element, "gpu"))
    return give("text.cpp:0:librigel_runtime.so has no kernels for GPUs, as it was built where no CUDA toolkit is", messages,
                1);
  if (!for_gpu && !bitcode_of(source->element, source->level))
    return give(std::string("text.cpp:0:no loops of ") + source->element + " at level " + source->level, messages, 1);
  std::unique_ptr<llvm::Module> own = front_end({source->text, source->size}, source->level, context, text);
  if (!own) return give(text, messages, 1);
  if (source->store) {
    std::unique_ptr<llvm::Module> store = front_end({source->store, source->store_size}, source->level, context, text);
    if (!store) return give(text, messages, 1);
    if (llvm::Linker::linkModules(*own, std::move(store)))
      return give(text + "text.cpp:0:the texts do not link", messages, 1);
  }
  std::unique_ptr<llvm::TargetMachine> machine = machine_for(source->level, text);
  if (!machine) return give("text.cpp:0:" + text, messages, 1);
  Linked linked = for_gpu ? with_kernel(std::move(own), *source, *machine) : with_loops(std::move(own), *source, *machine);
  if (!linked) return give(text + "text.cpp:0:" + llvm::toString(linked.takeError()), messages, 1);
  llvm::SmallString<0> emitted;
  llvm::raw_svector_ostream stream(emitted);
  llvm::legacy::PassManager emission;
  if (machine->addPassesToEmitFile(emission, stream, nullptr,
                                   for_gpu ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile))
    return give("text.cpp:0:LLVM cannot emit object files", messages, 1);
  emission.run(**linked);
  if (!text.empty()) return give(text, messages, 1);
  return give(emitted.str().str(), object, 0);
}

// Runs a function that returns an int in a thread of its own with as much stack as LLVM and Clang expect: the caller's may have little. No
// signal of the program is handled there.
template <class Function>
int on_own_stack(RigelBytes* messages, const Function& function) {
  constexpr std::size_t bytes = std::size_t{8} << 20;
  struct Call {
    const Function& function;
    int result;
  } call{function, 1};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, bytes);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int failed = pthread_create(
      &thread, &attributes,
      [](void* argument) -> void* {
        Call& own = *static_cast<Call*>(argument);
        own.result = own.function();
        return nullptr;
      },
      &call);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (failed) return give(std::string("text.cpp:0:no thread to compile in: ") + std::strerror(failed), messages, 1);
  pthread_join(thread, nullptr);
  return call.result;
}

int compile(const RigelSource* source, RigelBytes* object, RigelBytes* messages) {
  *object = {};
  *messages = {};
  return on_own_stack(messages, [&] { return compile_here(source, object, messages); });
}

// What loops and texts may call: the C library's functions on memory, and its mathematical functions. LLVM also calls some that no text
// names: ldexp for exp2 of a whole number, sincos for a sine and a cosine, exp10 for a power of 10.
llvm::orc::SymbolMap library(llvm::orc::LLJIT& jit) {
  llvm::orc::SymbolMap symbols;
  const auto add = [&](const char* name, auto* function) {
    symbols[jit.mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(function), llvm::JITSymbolFlags::Exported};
  };
  add("memcpy", &std::memcpy);
  add("memset", &std::memset);
  add("memmove", &std::memmove);
#define RIGEL_UNARY(name)                               \
  add(#name, static_cast<double (*)(double)>(&::name)); \
  add(#name "f", static_cast<float (*)(float)>(&::name##f));
#define RIGEL_BINARY(name)                                      \
  add(#name, static_cast<double (*)(double, double)>(&::name)); \
  add(#name "f", static_cast<float (*)(float, float)>(&::name##f));
  RIGEL_UNARY(exp)
  RIGEL_UNARY(exp2)
  RIGEL_UNARY(expm1)
  RIGEL_UNARY(log)
  RIGEL_UNARY(log2)
  RIGEL_UNARY(log1p)
  RIGEL_UNARY(sin)
  RIGEL_UNARY(cos)
  RIGEL_UNARY(tanh)
  RIGEL_UNARY(sqrt)
  RIGEL_UNARY(floor)
  RIGEL_UNARY(ceil)
  RIGEL_UNARY(trunc)
  RIGEL_BINARY(pow)
  RIGEL_UNARY(exp10)
  RIGEL_UNARY(round)
  RIGEL_UNARY(rint)
  RIGEL_UNARY(nearbyint)
  RIGEL_UNARY(roundeven)
  add("ldexp", static_cast<double (*)(double, int)>(&::ldexp));
  add("ldexpf", static_cast<float (*)(float, int)>(&::ldexpf));
  add("sincos", static_cast<void (*)(double, double*, double*)>(&::sincos));
  add("sincosf", static_cast<void (*)(float, float*, float*)>(&::sincosf));
  add("fma", static_cast<double (*)(double, double, double)>(&::fma));
  add("fmaf", static_cast<float (*)(float, float, float)>(&::fmaf));
#undef RIGEL_UNARY
#undef RIGEL_BINARY
  return symbols;
}

// One for the process. It is never destroyed: kernels may run in static destructors.
struct Jit {
  std::mutex mutex;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  unsigned long count = 0;
  std::string reported;  // what failed while symbols were looked up
};
Jit& the_jit() {
  static Jit* const one = new Jit;
  return *one;
}

llvm::Error load_into(Jit& all, llvm::StringRef object, const char* const* names, std::size_t count, void** addresses,
                      llvm::orc::JITDylib*& made) {
  if (!all.jit) {
    llvm::orc::JITTargetMachineBuilder machine{llvm::Triple(target)};
    auto jit = llvm::orc::LLJITBuilder()
                   .setJITTargetMachineBuilder(std::move(machine))
                   .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                   .setLinkProcessSymbolsByDefault(false)
                   .create();
    if (!jit) return jit.takeError();
    all.jit = std::move(*jit);
    all.jit->getExecutionSession().setErrorReporter(
        [&all](llvm::Error error) { all.reported += llvm::toString(std::move(error)) + "; "; });
    if (auto error = all.jit->getMainJITDylib().define(llvm::orc::absoluteSymbols(library(*all.jit)))) return error;
  }
  auto dylib = all.jit->createJITDylib("kernel" + std::to_string(all.count++));
  if (!dylib) return dylib.takeError();
  made = &*dylib;
  made->addToLinkOrder(all.jit->getMainJITDylib());
  if (auto error = all.jit->addObjectFile(*made, llvm::MemoryBuffer::getMemBufferCopy(object, "kernel"))) return error;
  for (std::size_t i = 0; i < count; ++i) {
    auto address = all.jit->lookup(*made, names[i]);
    if (!address) return address.takeError();
    addresses[i] = address->toPtr<void*>();
  }
  return llvm::Error::success();
}

int load_here(const char* object, std::size_t size, const char* const* names, std::size_t count, void** addresses,
              void** handle, RigelBytes* messages) {
  initialise();
  Jit& all = the_jit();
  const std::lock_guard lock(all.mutex);
  llvm::orc::JITDylib* made = nullptr;
  all.reported.clear();
  if (auto error = load_into(all, {object, size}, names, count, addresses, made)) {
    const std::string text = all.reported + llvm::toString(std::move(error));
    if (made) llvm::consumeError(all.jit->getExecutionSession().removeJITDylib(*made));
    return give(text, messages, 1);
  }
  *handle = made;
  return 0;
}

int load(const char* object, std::size_t size, const char* const* names, std::size_t count, void** addresses, void** handle,
         RigelBytes* messages) {
  *messages = {};
  *handle = nullptr;
  return on_own_stack(messages, [&] { return load_here(object, size, names, count, addresses, handle, messages); });
}

void unload(void* handle) {
  Jit& all = the_jit();
  const std::lock_guard lock(all.mutex);
  llvm::consumeError(all.jit->getExecutionSession().removeJITDylib(*static_cast<llvm::orc::JITDylib*>(handle)));
}

void release(RigelBytes* bytes) {
  std::free(bytes->data);
  *bytes = {};
}

// The digest that the linker wrote of this library's contents, the bitcode's among them: to compute one takes as long as to open the library.
std::string build_id() {
  const auto* const file = reinterpret_cast<const char*>(&rigel_first_byte);
  const auto* const segments = reinterpret_cast<const Elf64_Phdr*>(file + rigel_first_byte.e_phoff);
  const auto aligned = [](std::size_t size) { return (size + 3) / 4 * 4; };
  for (const Elf64_Phdr& segment : llvm::ArrayRef(segments, rigel_first_byte.e_phnum)) {
    if (segment.p_type != PT_NOTE) continue;
    const char* note = file + segment.p_vaddr;
    for (const char* const end = note + segment.p_memsz; note < end;) {
      const auto& head = *reinterpret_cast<const Elf64_Nhdr*>(note);
      const char* const content = note + sizeof head + aligned(head.n_namesz);
      if (head.n_type == NT_GNU_BUILD_ID && llvm::StringRef(note + sizeof head, head.n_namesz) == llvm::StringRef("GNU", 4))
        return llvm::toHex(llvm::StringRef(content, head.n_descsz));
      note = content + aligned(head.n_descsz);
    }
  }
  return {};
}

const char* build() {
  static const std::string text = std::string("Rigel " RIGEL_VERSION ", sources ") + rigel_text_sources +
                                  ", LLVM " LLVM_VERSION_STRING ", contents " + build_id();
  return text.c_str();
}

}  // namespace

}  // namespace rigel::runtime

extern "C" __attribute__((visibility("default"))) const RigelRuntime* rigel_runtime() {
  using namespace rigel::runtime;
  static const RigelRuntime all{rigel_runtime_interface, build(), &compile, &load, &unload, &release};
  return &all;
}
