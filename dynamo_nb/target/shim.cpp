// Lets fake tensors and autograd speak of "cuda:0" in a process that has no such device: a device
// guard that does nothing, and CUDA hooks that answer without a driver. Both enter by torch's own
// registries, so this must be loaded before `import torch`.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <memory>
#include <utility>

namespace {

struct AbsentGuard final : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA> {
  using Device = c10::Device;
  using Stream = c10::Stream;

  static Device only() { return Device(c10::DeviceType::CUDA, 0); }
  static Stream stream() { return Stream(Stream::DEFAULT, only()); }

  Device exchangeDevice(Device) const override { return only(); }
  Device getDevice() const override { return only(); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  Stream getStream(Device) const noexcept override { return stream(); }
  Stream getDefaultStream(Device) const override { return stream(); }
  Stream getNewStream(Device, int = 0) const override { return stream(); }
  Stream exchangeStream(Stream) const noexcept override { return stream(); }
  void record(void**, const Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
};

}  // namespace

namespace at {

// The registry's key is the name of the class. What a CUDA build knows of its libraries is asked of
// its own hooks; a CPU build gets what a current CUDA build would say.
struct CUDAHooks final : CUDAHooksInterface {
  explicit CUDAHooks(std::unique_ptr<CUDAHooksInterface> own) : own_(std::move(own)) {}

  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return false; }
  bool hasCUDA() const override { return false; }
  bool hasPrimaryContext(DeviceIndex) const override { return false; }
  DeviceIndex deviceCount() const override { return 0; }
  DeviceIndex current_device() const override { return 0; }
  bool hasMAGMA() const override { return own_ ? own_->hasMAGMA() : true; }
  bool hasCuDNN() const override { return own_ ? own_->hasCuDNN() : true; }
  bool hasCuSOLVER() const override { return own_ ? own_->hasCuSOLVER() : true; }
  bool hasCuBLASLt() const override { return own_ ? own_->hasCuBLASLt() : true; }
  bool compiledWithCuDNN() const override { return own_ ? own_->compiledWithCuDNN() : true; }
  bool supportsDilatedConvolutionWithCuDNN() const override {
    return own_ ? own_->supportsDilatedConvolutionWithCuDNN() : true;
  }
  bool supportsDepthwiseConvolutionWithCuDNN() const override {
    return own_ ? own_->supportsDepthwiseConvolutionWithCuDNN() : true;
  }
  bool supportsBFloat16ConvolutionWithCuDNNv8() const override {
    return own_ ? own_->supportsBFloat16ConvolutionWithCuDNNv8() : true;
  }
  bool supportsBFloat16RNNWithCuDNN() const override {
    return own_ ? own_->supportsBFloat16RNNWithCuDNN() : true;
  }
  double batchnormMinEpsilonCuDNN() const override {
    return own_ ? own_->batchnormMinEpsilonCuDNN() : 1e-5;
  }
  // Not every torch has these three, so they don't say that they override.
  long versionCuDNN() const { return own_ ? own_->versionCuDNN() : 91000; }
  long versionRuntimeCuDNN() const { return versionCuDNN(); }
  long versionCuDNNFrontend() const { return 11000; }
  long versionCUDART() const override { return own_ ? own_->versionCUDART() : 13000; }

 private:
  std::unique_ptr<CUDAHooksInterface> own_;
};

static std::unique_ptr<CUDAHooksInterface> own_hooks() {
  auto* registry = CUDAHooksRegistry();
  return registry->Has("CUDAHooks") ? registry->Create("CUDAHooks", CUDAHooksArgs{}) : nullptr;
}

static std::unique_ptr<CUDAHooksInterface> kept = own_hooks();

C10_REGISTER_CREATOR_WITH_PRIORITY(
    CUDAHooksRegistry, CUDAHooks, c10::REGISTRY_PREFERRED,
    [](CUDAHooksArgs) -> std::unique_ptr<CUDAHooksInterface> {
      return std::make_unique<CUDAHooks>(std::move(kept));
    });

}  // namespace at

extern "C" void dynamo_nb_absent_gpu() {
  c10::impl::registerDeviceGuard(c10::DeviceType::CUDA, new AbsentGuard());
}
