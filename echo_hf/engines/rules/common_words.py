"""The commonest words, by which plain rules recognise a language."""

from __future__ import annotations

from echo_hf.engines.rules.words import words

# Of the languages that are covered.
FAMILIAR = words(
    en="""the and of to is are was were in on for with that this it you not what how why who when
    they we he she his her my your our from by at as be have has had will would can do does did
    just so but or if all about like more no than then there their them been out up get got one
    new now too almost against after before""",
    es="""el la los las del que y en un una por con para es no se su lo como más pero sus le ya este
    esta sí porque cuando muy sin sobre también me hasta hay donde quien desde todo nos esto les
    hoy""",
    fr="""le les des et est une pour dans qui pas sur avec ce il elle nous vous ne plus au par je
    tout mais fait être cette son sa ses aux ont très bien comme sont du""",
    de="""der die das und ist nicht ein eine zu mit auf für von sich den dem auch es an wie im ich
    sie wir aber noch nur hat haben wird bei oder nach wenn kann mehr aus sind dass über hier""",
    pt="""o os as do da dos das que e não uma um com para por mais como mas foi ao ele ela isso este
    essa são muito já também só pelo pela até eu você meu minha tem ser quando""",
    it="""il lo gli di che non per una sono con come ma più anche questo questa è nel della dei alla
    si""",
)
# Of languages that share words with them and are not covered.
ELSEWHERE = words(
    nl="het een niet voor zijn dat ik je maar ook naar deze wat werd met heb heeft worden wel",
    sv="och att det som på är för inte jag har av ett den till med om ikke jeg er vi kan",
    id="yang dan ini itu untuk dengan tidak ada saya kamu akan bisa dari pada juga sudah apa aku",
    ro="și este nu din pentru cu care mai sau sunt ca fi ale acest lui pe",
    pl="nie się jest jak czy tak ale już przez tylko może bardzo jako dla było są na to że",
    tr="bir ve bu için çok da ile ne gibi daha olarak ama var değil ben sen mi",
    tl="ang ng mga sa na ay ko mo siya hindi ito po lang din yung si nang at kung",
    hu="és hogy nem egy az ez van mint csak már még volt",
    fi="ja hän että mutta kun niin ovat tämä",
    cs="je se na že to jsem jako ale tak pro jak nebo když není bude si",
    vi="và là của có không một",
    ca="amb els les dels aquest però més molt són",
)
# Who speaks of themselves or to somebody is not describing a picture.
FIRST_PERSON = words(
    en="i im ive my mine we our us you your",
    es="yo mi mis nuestro nuestra",
    fr="je j mon ma mes nous notre",
    de="ich mein meine wir unser",
    pt="eu meu minha nós nosso",
    it="io mio mia noi nostro",
)
