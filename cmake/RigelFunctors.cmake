# rigel_functors_on_hopper(<source>…): products of 16-bit floats with a functor of these files as epilogue get kernels of
# cuda.hopper, too. They need sm_90a, which replaces sm_90 for these files. Call it where the target of the files is defined.
function(rigel_functors_on_hopper)
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_DEFINITIONS RIGEL_FUNCTORS_ON_HOPPER)
  # Options of a source file come after those of its target.
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS --no-offload-arch=sm_90 --offload-arch=sm_90a)
endfunction()
