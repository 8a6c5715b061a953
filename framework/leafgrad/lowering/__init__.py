"""What executors that generate code share: from equations to loop nests, reductions and products over forms in memory.

Nothing here is text of a language but the C expressions that ops carry. Whoever generates code, as leafgrad-native does
for the processor and leafgrad-cuda for the GPU, writes the kernels that this makes, and says where memory lies.

- ``patterns``: what the rules of ``op.lower`` return, and who asks for them.
- ``lowering``: the equations of a stage as kernels; ``kernels`` says which there are.
- ``forms``, ``strides``, ``joins``: where elements lie, so that views cost nothing.
- ``memory``: which arrays may take each other's place.
- ``expressions``: the C expressions of elementwise ops.
"""
