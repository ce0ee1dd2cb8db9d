# Builds on the builder's own platform and cross-compiles, so that no emulation is needed:
#   docker buildx build --platform linux/amd64,linux/arm64 .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY cmd cmd
COPY fluxgen fluxgen
COPY internal internal
ARG TARGETOS TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags "-s -w" -o /service-provider-velero ./cmd/service-provider-velero

FROM gcr.io/distroless/static:nonroot
COPY --from=build /service-provider-velero /service-provider-velero
# Numeric, so that a cluster that demands runAsNonRoot can tell.
USER 65532:65532
ENTRYPOINT ["/service-provider-velero"]
