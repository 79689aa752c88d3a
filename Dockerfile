# docker build --tag dpm .
# docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/work" dpm sample model.dpm data.csv ...
FROM rust:1.95-slim AS build
RUN apt-get update -qq && apt-get install -qq -y --no-install-recommends python3
WORKDIR /source
COPY . .
# Static, so that it needs nothing around it.
RUN cargo rustc --release --locked --bin dpm -- -C target-feature=+crt-static -C strip=symbols \
    && mkdir -p /image/usr/bin /image/licences \
    && mkdir -m 1777 /image/tmp \
    && cp target/release/dpm /image/usr/bin/ \
    && cp LICENSE-MIT LICENSE-APACHE /image/licences/ \
    && python3 packaging/licences.py "$(rustc -vV | sed -n 's/^host: //p')" \
        >/image/licences/LICENSE-THIRD-PARTY.txt

FROM scratch
COPY --from=build /image /
USER 65532:65532
WORKDIR /work
ENTRYPOINT ["/usr/bin/dpm"]
