/** The newest `capacity` items, oldest first. */
export type Ring<T> = {
  /** Adds the item and returns the one it pushed out. */
  push(item: T): T | undefined
  /** Removes and returns the oldest item. */
  shift(): T | undefined
  readonly size: number
  values(): T[]
  clear(): void
}

export function createRing<T>(capacity: number): Ring<T> {
  // A plain array that grows, so that a quiet sandbox does not pay for a million empty slots. `first` is the position
  // of the oldest item once slots are reused.
  let slots: (T | undefined)[] = []
  let first = 0
  let size = 0

  function shift(): T | undefined {
    if (size === 0) return undefined
    const oldest = slots[first]
    slots[first] = undefined
    first = (first + 1) % capacity
    size -= 1
    return oldest
  }

  return {
    push(item) {
      const pushedOut = size === capacity ? shift() : undefined
      slots[(first + size) % capacity] = item
      size += 1
      return pushedOut
    },
    shift,
    get size() {
      return size
    },
    values() {
      const items: T[] = []
      for (let index = 0; index < size; index += 1) {
        const item = slots[(first + index) % capacity]
        if (item !== undefined) items.push(item)
      }
      return items
    },
    clear() {
      slots = []
      first = 0
      size = 0
    },
  }
}
