! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
!
! Rigel from Fortran through iso_c_binding: products, a kernel matrix and its gradient, a reduction, a linear layer, a linear system and shortest paths
! that are worked out by hand, and a call that is refused.
! Fortran's matrices are contiguous along their columns: RIGEL_COLUMN_MAJOR.

! The part of rigel.h that the program needs.
module rigel
  use, intrinsic :: iso_c_binding
  implicit none

  integer(c_int32_t), parameter :: rigel_ok = 0, rigel_invalid_argument = 1, rigel_unsupported = 2, rigel_device = 6
  integer(c_int32_t), parameter :: rigel_f32 = 3, rigel_f64 = 4
  integer(c_int32_t), parameter :: rigel_scale = 1, rigel_tier_scalar = 0, rigel_activation_relu = 1, rigel_maximum = 2

  type, bind(c) :: rigel_matrix
    integer(c_size_t) :: size = 0
    type(c_ptr) :: data = c_null_ptr
    integer(c_int64_t) :: batches = 1, rows = 0, columns = 0, batch_stride = 0, row_stride = 0, column_stride = 0
    integer(c_int32_t) :: type = 0, reserved = 0
  end type

  type, bind(c) :: rigel_step
    integer(c_int32_t) :: kind = 0, x_source = 0, y_source = 0, reserved = 0
    real(c_double) :: x = 0, y = 0
    integer(c_int64_t) :: offset = 0
  end type

  type, bind(c) :: rigel_program
    integer(c_int32_t) :: steps_count = 0, sources_count = 0
    type(rigel_step) :: steps(8)
    type(rigel_matrix) :: sources(4)
  end type

  type, bind(c) :: rigel_options
    type(c_ptr) :: kernel = c_null_ptr, workspace = c_null_ptr
    integer(c_size_t) :: workspace_bytes = 0
    integer(c_int32_t) :: require = 0, precision = 0
    integer(c_int64_t) :: reserved(2) = 0
  end type

  type, bind(c) :: rigel_contract_args
    integer(c_size_t) :: size = 0
    type(c_ptr) :: semiring = c_null_ptr, parameters = c_null_ptr
    integer(c_int32_t) :: parameters_count = 0, accumulator = 0, accumulate = 0, may_cancel = 0
    type(rigel_program) :: epilogue
    type(rigel_options) :: options
    type(c_ptr) :: from_text = c_null_ptr, epilogue_from_text = c_null_ptr, epilogue_parameters = c_null_ptr
    integer(c_int32_t) :: epilogue_parameters_count = 0, parameter_views_count = 0
    type(c_ptr) :: parameter_views = c_null_ptr, epilogue_parameter_views = c_null_ptr
    integer(c_int32_t) :: epilogue_parameter_views_count = 0, reserved = 0
  end type

  type, bind(c) :: rigel_semiring_args
    integer(c_size_t) :: size = 0
    type(c_ptr) :: name = c_null_ptr
    integer(c_int32_t) :: element = 0, commutative = 0
    type(c_ptr) :: multiply = c_null_ptr, add = c_null_ptr, identity = c_null_ptr, step = c_null_ptr, result = c_null_ptr
    type(c_ptr) :: parameters = c_null_ptr
    integer(c_int32_t) :: parameters_count = 0, reserved_flags = 0
    integer(c_int64_t) :: reserved(4) = 0
  end type

  type, bind(c) :: rigel_reduction
    integer(c_int32_t) :: reducer = 0, or_equal = 0, exclude_self = 0, reserved = 0
    integer(c_int64_t) :: k = 0
    real(c_double) :: threshold = 0
    type(c_ptr) :: offsets = c_null_ptr, score_kernel = c_null_ptr
    integer(c_size_t) :: workspace_limit = 0
  end type

  type, bind(c) :: rigel_reduce_args
    integer(c_size_t) :: size = 0
    type(c_ptr) :: semiring = c_null_ptr, parameters = c_null_ptr
    integer(c_int32_t) :: parameters_count = 0, accumulator = 0, may_cancel = 0, reserved_flags = 0
    type(rigel_reduction) :: reduction
    type(rigel_program) :: epilogue
    type(rigel_options) :: options
    integer(c_int64_t) :: reserved(4) = 0
  end type

  type, bind(c) :: rigel_kernel_solve_args
    integer(c_size_t) :: size = 0
    type(c_ptr) :: kernel = c_null_ptr, hyperparameters = c_null_ptr, metric = c_null_ptr, parameters = c_null_ptr
    type(c_ptr) :: metric_matrix = c_null_ptr
    integer(c_int32_t) :: hyperparameters_count = 0, parameters_count = 0
    real(c_double) :: regularisation = 0, tolerance = 0
    integer(c_int32_t) :: iterations = 0, rank = 0
    type(c_funptr) :: progress = c_null_funptr
    type(c_ptr) :: user = c_null_ptr
    integer(c_int32_t) :: may_cancel = 0, reserved_flags = 0
    type(c_ptr) :: score_kernel = c_null_ptr
    integer(c_size_t) :: workspace_limit = 0
    type(rigel_options) :: options
    integer(c_int64_t) :: reserved(4) = 0
  end type

  type, bind(c) :: rigel_kernel_solve_result
    integer(c_size_t) :: size = 0
    real(c_double) :: residual = 0
    integer(c_int32_t) :: iterations = 0, rank = 0, converged = 0, reserved = 0
  end type

  type, bind(c) :: rigel_linear_args
    integer(c_size_t) :: size = 0
    integer(c_int32_t) :: tier = rigel_tier_scalar, activation = 0
    type(rigel_program) :: epilogue
    type(rigel_options) :: options
    integer(c_int64_t) :: overwrite = 0
    integer(c_int64_t) :: reserved(3) = 0
  end type

  type, bind(c) :: rigel_closure_args
    integer(c_size_t) :: size = 0
    type(c_ptr) :: semiring = c_null_ptr
    integer(c_int64_t) :: block = 0
    type(rigel_options) :: options
    integer(c_int64_t) :: reserved(4) = 0
  end type

  type, bind(c) :: rigel_parameter
    type(c_ptr) :: name = c_null_ptr
    real(c_double) :: value = 0
  end type

  type, bind(c) :: rigel_parameter_view
    type(c_ptr) :: name = c_null_ptr
    type(rigel_matrix) :: matrix
  end type

  type, bind(c) :: rigel_kernel_matrix_args
    integer(c_size_t) :: size = 0
    type(c_ptr) :: kernel = c_null_ptr, hyperparameters = c_null_ptr, metric = c_null_ptr, parameters = c_null_ptr
    integer(c_int32_t) :: hyperparameters_count = 0, parameters_count = 0
    real(c_double) :: regularisation = 0
    integer(c_int64_t) :: m0 = 0, n0 = 0
    real(c_double) :: threshold = 0
    integer(c_int32_t) :: may_cancel = 0, reserved_flags = 0
    type(rigel_options) :: options
    type(c_ptr) :: metric_matrix = c_null_ptr
    integer(c_int64_t) :: reserved(3) = 0
  end type

  type, bind(c) :: rigel_hyperparameter_gradient
    type(c_ptr) :: name = c_null_ptr
    type(rigel_matrix) :: matrix
  end type

  type, bind(c) :: rigel_kernel_matrix_gradient_args
    integer(c_size_t) :: size = 0
    type(c_ptr) :: kernel = c_null_ptr, hyperparameters = c_null_ptr, metric = c_null_ptr, parameters = c_null_ptr
    integer(c_int32_t) :: hyperparameters_count = 0, parameters_count = 0
    type(c_ptr) :: gradients = c_null_ptr
    integer(c_int32_t) :: gradients_count = 0, accumulate = 0, may_cancel = 0, reserved_flags = 0
    real(c_double) :: epsilon = 0
    integer(c_int64_t) :: block_rows = 0
    type(rigel_options) :: options
    integer(c_int64_t) :: reserved(4) = 0
  end type

  type, bind(c) :: rigel_solve_args
    integer(c_size_t) :: size = 0
    integer(c_int32_t) :: triangle = 0, overwrite_a = 0, overwrite_b = 0, check = 0, refine = 0, reserved_flags = 0
    type(rigel_options) :: options
    integer(c_int64_t) :: reserved(4) = 0
  end type

  ! Matrices have no intent: of intent(in) the compiler would infer that what they point to is not written either.
  interface
    integer(c_int32_t) function rigel_create(device, stream, handle) bind(c)
      import
      integer(c_int32_t), value :: device
      type(c_ptr), value :: stream
      type(c_ptr), intent(out) :: handle
    end function
    subroutine rigel_destroy(handle) bind(c)
      import
      type(c_ptr), value :: handle
    end subroutine
    integer(c_int32_t) function rigel_synchronize(handle) bind(c)
      import
      type(c_ptr), value :: handle
    end function
    type(c_ptr) function rigel_last_error() bind(c)
      import
    end function
    integer(c_int32_t) function rigel_reduce(handle, args, a, b, values, indices) bind(c)
      import
      type(c_ptr), value :: handle
      type(rigel_reduce_args), intent(in) :: args
      type(rigel_matrix) :: a, b, values
      type(c_ptr), value :: indices
    end function
    integer(c_int32_t) function rigel_semiring_create(args, semiring) bind(c)
      import
      type(rigel_semiring_args), intent(in) :: args
      type(c_ptr), intent(out) :: semiring
    end function
    subroutine rigel_semiring_destroy(semiring) bind(c)
      import
      type(c_ptr), value :: semiring
    end subroutine
    integer(c_int32_t) function rigel_kernel_solve(handle, args, x, y, alpha, result) bind(c)
      import
      type(c_ptr), value :: handle
      type(rigel_kernel_solve_args), intent(in) :: args
      type(rigel_matrix) :: x, y, alpha
      type(rigel_kernel_solve_result) :: result
    end function
    integer(c_int32_t) function rigel_contract(handle, args, a, b, c) bind(c)
      import
      type(c_ptr), value :: handle
      type(rigel_contract_args), intent(in) :: args
      type(rigel_matrix) :: a, b, c
    end function
    integer(c_int32_t) function rigel_linear_forward(handle, args, x, w, bias, y, z) bind(c)
      import
      type(c_ptr), value :: handle
      type(rigel_linear_args), intent(in) :: args
      type(rigel_matrix) :: x, w, bias, y
      type(c_ptr), value :: z
    end function
    integer(c_int32_t) function rigel_kernel_matrix(handle, args, x, z, d) bind(c)
      import
      type(c_ptr), value :: handle
      type(rigel_kernel_matrix_args), intent(in) :: args
      type(rigel_matrix) :: x, z, d
    end function
    integer(c_int32_t) function rigel_kernel_matrix_gradient(handle, args, x, z, g, v, dx, dz) bind(c)
      import
      type(c_ptr), value :: handle
      type(rigel_kernel_matrix_gradient_args), intent(in) :: args
      type(rigel_matrix) :: x, z, g, dx
      type(c_ptr), value :: v, dz
    end function
    integer(c_int32_t) function rigel_cholesky_solve(handle, args, a, b, x, info) bind(c)
      import
      type(c_ptr), value :: handle
      type(rigel_solve_args), intent(in) :: args
      type(rigel_matrix) :: a, b, x
      type(c_ptr), value :: info
    end function
    integer(c_int32_t) function rigel_closure(handle, args, d, predecessors, report) bind(c)
      import
      type(c_ptr), value :: handle
      type(rigel_closure_args), intent(in) :: args
      type(rigel_matrix) :: d
      type(c_ptr), value :: predecessors, report
    end function
    integer(c_size_t) function strlen(text) bind(c)
      import
      type(c_ptr), value :: text
    end function
  end interface

  interface matrix
    procedure matrix_of_f32, matrix_of_f64
  end interface

contains

  ! The library may write the values.
  function matrix_of_f32(values) result(m)
    real(c_float), target, contiguous, intent(inout) :: values(:, :)
    type(rigel_matrix) :: m
    m = contiguous_matrix(c_loc(values), rigel_f32, size(values, 1), size(values, 2))
  end function

  function matrix_of_f64(values) result(m)
    real(c_double), target, contiguous, intent(inout) :: values(:, :)
    type(rigel_matrix) :: m
    m = contiguous_matrix(c_loc(values), rigel_f64, size(values, 1), size(values, 2))
  end function

  function contiguous_matrix(data, type, rows, columns) result(m)
    type(c_ptr), intent(in) :: data
    integer(c_int32_t), intent(in) :: type
    integer, intent(in) :: rows, columns
    type(rigel_matrix) :: m
    m%size = c_sizeof(m)
    m%data = data
    m%rows = rows
    m%columns = columns
    m%row_stride = 1
    m%column_stride = rows
    m%type = type
  end function

  function last_error() result(text)
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: characters(:)
    integer :: i
    type(c_ptr) :: message
    message = rigel_last_error()
    call c_f_pointer(message, characters, [strlen(message)])
    allocate(character(len=size(characters)) :: text)
    do i = 1, size(characters)
      text(i:i) = characters(i)
    end do
  end function

end module

program calls
  use, intrinsic :: ieee_arithmetic
  use rigel
  implicit none

  real(c_double), target :: a(2, 3), b(3, 2), c(2, 2), d(4, 4)
  real(c_float), target :: x(2, 3), w(3, 2), bias(1, 2), y(2, 2)
  real(c_double), target :: points(2, 2), others(1, 2), k(2, 1), g(2, 1), dx(2, 2), dlength(1, 1)
  real(c_double), target :: system(2, 2), right(2, 1), solution(2, 1)
  real(c_double) :: far
  type(c_ptr) :: handle
  type(rigel_contract_args) :: contract
  type(rigel_reduce_args) :: reduction
  real(c_double), target :: largest(2, 1)
  type(rigel_kernel_solve_args) :: system_args
  type(rigel_kernel_solve_result) :: found
  integer(c_int32_t), target :: steps
  type(rigel_linear_args) :: linear
  type(rigel_closure_args) :: closure
  type(rigel_kernel_matrix_args) :: kernel
  type(rigel_kernel_matrix_gradient_args) :: gradient
  type(rigel_solve_args) :: solve
  type(rigel_parameter), target :: of_kernel
  type(rigel_hyperparameter_gradient), target :: by_length
  type(rigel_matrix) :: wrong
  type(rigel_contract_args) :: of_text
  type(rigel_semiring_args) :: text
  type(c_ptr) :: semiring
  type(rigel_parameter), target :: weight
  type(rigel_parameter_view), target :: in_memory
  real(c_double), target :: weights(1, 1)
  character(kind=c_char), target :: plus_times(11) = [character(kind=c_char) :: &
    'p', 'l', 'u', 's', '_', 't', 'i', 'm', 'e', 's', c_null_char]
  character(kind=c_char), target :: min_plus(9) = [character(kind=c_char) :: 'm', 'i', 'n', '_', 'p', 'l', 'u', 's', c_null_char]
  character(kind=c_char), target :: laplace(8) = [character(kind=c_char) :: 'l', 'a', 'p', 'l', 'a', 'c', 'e', c_null_char]
  character(kind=c_char), target :: length(7) = [character(kind=c_char) :: 'l', 'e', 'n', 'g', 't', 'h', c_null_char]
  character(kind=c_char), target :: manhattan(10) = [character(kind=c_char) :: &
    'm', 'a', 'n', 'h', 'a', 't', 't', 'a', 'n', c_null_char]
  character(kind=c_char), target :: w_name(2) = [character(kind=c_char) :: 'w', c_null_char]
  character(kind=c_char), target :: distance(15) = [character(kind=c_char) :: &
    'w', ' ', '*', ' ', 'a', 'b', 's', '(', 'a', ' ', '-', ' ', 'b', ')', c_null_char]
  character(kind=c_char), target :: sum(6) = [character(kind=c_char) :: 'x', ' ', '+', ' ', 'y', c_null_char]
  integer(c_int32_t) :: code
  integer :: failures = 0

  code = rigel_create(-1_c_int32_t, c_null_ptr, handle)
  if (code == rigel_device) then
    print '(2a)', 'skipped: ', last_error()
    stop 77
  end if
  call check(code == rigel_ok, 'rigel_create')

  ! (1 2 3; 4 5 6) (1 2; 3 4; 5 6) = (22 28; 49 64), times 1/2.
  a = reshape([1d0, 4d0, 2d0, 5d0, 3d0, 6d0], [2, 3])
  b = reshape([1d0, 3d0, 5d0, 2d0, 4d0, 6d0], [3, 2])
  c = -1
  contract%size = c_sizeof(contract)
  contract%semiring = c_loc(plus_times)
  contract%epilogue%steps_count = 1
  contract%epilogue%steps(1)%kind = rigel_scale
  contract%epilogue%steps(1)%x = 0.5d0
  call check(rigel_contract(handle, contract, matrix(a), matrix(b), matrix(c)) == rigel_ok, 'rigel_contract')
  call check(rigel_synchronize(handle) == rigel_ok, 'rigel_synchronize')
  call check(all(c == reshape([11d0, 24.5d0, 14d0, 32d0], [2, 2])), 'the product')

  ! The points (0 0) and (3 1) are both 2 from (1 1): k = exp(-2/2).
  points = reshape([0d0, 3d0, 0d0, 1d0], [2, 2])
  others = reshape([1d0, 1d0], [1, 2])
  of_kernel%name = c_loc(length)
  of_kernel%value = 2
  kernel%size = c_sizeof(kernel)
  kernel%kernel = c_loc(laplace)
  kernel%hyperparameters = c_loc(of_kernel)
  kernel%hyperparameters_count = 1
  kernel%metric = c_loc(manhattan)
  call check(rigel_kernel_matrix(handle, kernel, matrix(points), matrix(others), matrix(k)) == rigel_ok, 'rigel_kernel_matrix')
  call check(rigel_synchronize(handle) == rigel_ok, 'rigel_synchronize')
  call check(all(abs(k(:, 1) - exp(-1d0)) <= 4 * epsilon(1d0)), 'the kernel matrix')

  ! With G = (1; -2): dX = -G k sign(x - z)/2, and by the length sum G k d/4 = -k/2.
  g = reshape([1d0, -2d0], [2, 1])
  by_length%name = c_loc(length)
  by_length%matrix = matrix(dlength)
  gradient%size = c_sizeof(gradient)
  gradient%kernel = kernel%kernel
  gradient%hyperparameters = kernel%hyperparameters
  gradient%hyperparameters_count = 1
  gradient%metric = kernel%metric
  gradient%gradients = c_loc(by_length)
  gradient%gradients_count = 1
  call check(rigel_kernel_matrix_gradient(handle, gradient, matrix(points), matrix(others), matrix(g), c_null_ptr, matrix(dx), &
                                          c_null_ptr) == rigel_ok, 'rigel_kernel_matrix_gradient')
  call check(rigel_synchronize(handle) == rigel_ok, 'rigel_synchronize')
  call check(all(abs(dx - exp(-1d0) * reshape([0.5d0, 1d0, 0.5d0, 0d0], [2, 2])) <= 4 * epsilon(1d0)), 'the gradient by X')
  call check(abs(dlength(1, 1) + exp(-1d0) / 2) <= 4 * epsilon(1d0), 'the gradient by the length')

  ! The largest numbers of the rows of (22 28; 49 64), halved.
  reduction%size = c_sizeof(reduction)
  reduction%semiring = c_loc(plus_times)
  reduction%epilogue = contract%epilogue
  reduction%reduction%reducer = rigel_maximum
  call check(rigel_reduce(handle, reduction, matrix(a), matrix(b), matrix(largest), c_null_ptr) == rigel_ok, 'rigel_reduce')
  call check(rigel_synchronize(handle) == rigel_ok, 'rigel_synchronize')
  call check(all(largest(:, 1) == [14d0, 32d0]), 'the largest of each row')

  ! The same points are 4 apart: (1 + 1/2 e^-2; e^-2 1 + 1/2) alpha = (1; 0).
  right = reshape([1d0, 0d0], [2, 1])
  steps = 0
  system_args%size = c_sizeof(system_args)
  system_args%kernel = kernel%kernel
  system_args%hyperparameters = kernel%hyperparameters
  system_args%hyperparameters_count = 1
  system_args%metric = kernel%metric
  system_args%regularisation = 0.5d0
  system_args%tolerance = 1d-14
  system_args%progress = c_funloc(count_steps)
  system_args%user = c_loc(steps)
  found%size = c_sizeof(found)
  call check(rigel_kernel_solve(handle, system_args, matrix(points), matrix(right), matrix(solution), found) == rigel_ok, &
             'rigel_kernel_solve')
  call check(found%converged == 1 .and. found%iterations == steps, 'the steps of the system')
  call check(all(abs(solution(:, 1) * (2.25d0 - exp(-4d0)) - [1.5d0, -exp(-2d0)]) <= 1d-13), 'the solution without a matrix')

  ! (4 2; 2 3) (-1/2; 2) = (2; 5).
  system = reshape([4d0, 2d0, 2d0, 3d0], [2, 2])
  right = reshape([2d0, 5d0], [2, 1])
  solve%size = c_sizeof(solve)
  call check(rigel_cholesky_solve(handle, solve, matrix(system), matrix(right), matrix(solution), c_null_ptr) == rigel_ok, &
             'rigel_cholesky_solve')
  call check(rigel_synchronize(handle) == rigel_ok, 'rigel_synchronize')
  call check(all(abs(solution(:, 1) - [-0.5d0, 2d0]) <= 8 * epsilon(1d0)), 'the solution')

  ! The same product in a linear layer: relu((22 28; 49 64) + (-30 1)).
  x = real(a, c_float)
  w = real(b, c_float)
  bias = reshape([-30., 1.], [1, 2])
  linear%size = c_sizeof(linear)
  linear%activation = rigel_activation_relu
  call check(rigel_linear_forward(handle, linear, matrix(x), matrix(w), matrix(bias), matrix(y), c_null_ptr) == rigel_ok, &
             'rigel_linear_forward')
  call check(rigel_synchronize(handle) == rigel_ok, 'rigel_synchronize')
  call check(all(y == reshape([0., 19., 29., 65.], [2, 2])), 'the layer')

  ! Arcs 1 -> 2 of 4, 1 -> 3 of 1, 3 -> 2 of 2, 2 -> 4 of 5: from 1 to 4 it is 1 + 2 + 5.
  far = ieee_value(far, ieee_positive_inf)
  d = far
  d(1, 2) = 4
  d(1, 3) = 1
  d(3, 2) = 2
  d(2, 4) = 5
  closure%size = c_sizeof(closure)
  closure%semiring = c_loc(min_plus)
  call check(rigel_closure(handle, closure, matrix(d), c_null_ptr, c_null_ptr) == rigel_ok, 'rigel_closure')
  call check(rigel_synchronize(handle) == rigel_ok, 'rigel_synchronize')
  call check(all(d(1, :) == [0d0, 3d0, 1d0, 8d0]), 'the paths from vertex 1')
  call check(all(d(4, :) == [far, far, far, 0d0]), 'the paths from vertex 4')

  ! A semiring from text: sum of 2 |a - b|, of (1 2 3; 4 5 6) and (1 2; 3 4; 5 6).
  weight%name = c_loc(w_name)
  weight%value = 2
  text%size = c_sizeof(text)
  text%element = rigel_f64
  text%multiply = c_loc(distance)
  text%add = c_loc(sum)
  text%parameters = c_loc(weight)
  text%parameters_count = 1
  call check(rigel_semiring_create(text, semiring) == rigel_ok, 'rigel_semiring_create')
  of_text%size = c_sizeof(of_text)
  of_text%from_text = semiring
  code = rigel_contract(handle, of_text, matrix(a), matrix(b), matrix(c))
  if (code == rigel_unsupported) then
    print '(2a)', 'skipped: semirings from text: ', last_error()
  else
    call check(code == rigel_ok, 'rigel_contract with a semiring from text')
    call check(all(c == reshape([6d0, 12d0, 12d0, 6d0], [2, 2])), 'the distances')
    weights = 0.5d0
    in_memory%name = c_loc(w_name)
    in_memory%matrix = matrix(weights)
    of_text%parameter_views = c_loc(in_memory)
    of_text%parameter_views_count = 1
    call check(rigel_contract(handle, of_text, matrix(a), matrix(b), matrix(c)) == rigel_ok, 'a weight in memory')
    call check(all(c == reshape([1.5d0, 3d0, 3d0, 1.5d0], [2, 2])), 'the distances with it')
  end if
  call rigel_semiring_destroy(semiring)

  ! Extents that do not match.
  wrong = matrix(b)
  wrong%rows = 2
  c = -1
  call check(rigel_contract(handle, contract, matrix(a), wrong, matrix(c)) == rigel_invalid_argument, 'the refusal')
  call check(index(last_error(), 'rigel_contract: B is 2x2') == 1, last_error())
  call check(all(c == -1), 'C, which a call that is refused does not write')

  call rigel_destroy(handle)
  call rigel_destroy(c_null_ptr)
  if (failures > 0) stop 1

contains

  integer(c_int32_t) function count_steps(iteration, residual, user) bind(c)
    integer(c_int32_t), value :: iteration
    real(c_double), value :: residual
    type(c_ptr), value :: user
    integer(c_int32_t), pointer :: count
    call c_f_pointer(user, count)
    count = iteration
    count_steps = merge(1_c_int32_t, 0_c_int32_t, residual >= 0)
  end function

  subroutine check(condition, what)
    logical, intent(in) :: condition
    character(len=*), intent(in) :: what
    if (condition) return
    failures = failures + 1
    print '(2a)', 'failed: ', what
  end subroutine

end program
