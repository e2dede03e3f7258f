/** The registered name of a media type: many clients write `image/jpg`, which vendors refuse. */
export function registeredType(mediaType: string): string {
  return mediaType === 'image/jpg' ? 'image/jpeg' : mediaType
}
